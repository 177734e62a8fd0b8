// The format of the segment files of the KV block store. A segment has a fixed number of slots of equal size. A slot
// holds one block and is written once: first the payload, then the head. Pure functions and values; any thread.
//
//   segment = header head[num_slots] zeros payload[num_slots]    the zeros end at a multiple of 4096 bytes
//   header  = magic:u64 version:u32 block_size:u32 num_slots:u32 0:u32 payload_bytes:u64 id:u64 identity:u64[2]
//             label:char[64] checksum:u64
//   head    = magic:u64 hash:u64[2] parent_hash:u64[2] extra_keys:u64[2] payload_checksum:u64[2]
//             token_ids:i32[block_size] zeros checksum:u64       the zeros end at a multiple of 8 bytes
//   payload = byte[payload_bytes]
//
// Integers have the byte order of the machine; the magic numbers reject files of the other order. header.checksum is
// the XXH3-64 hash of the header's first 120 bytes. `id` is random. The label is padded with zeros. head.checksum is
// the XXH3-64 hash of the head's other bytes, XORed with header.checksum, so a head is valid only in its own segment. A
// head of zeros is an empty slot. `extra_keys` and payload_checksum are XXH3-128 hashes. The file ends after the last
// payload written; it may end within a payload if its writer was killed.
//
// Example: block_size 16, payload_bytes 114688, num_slots 584. A head has 144 bytes. Head 3 begins at byte 128 + 3 *
// 144 = 560. The heads end at byte 84224, so payload 0 begins at byte 86016 and payload 3 at byte 430080. The complete
// file has 67063808 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "engine/config/hash.h"
#include "engine/request/block_hash.h"

namespace vllm {

// The identity of a full block of KV cache: its tokens, its extra keys and the prefix before it.
struct KVBlockKey {
  BlockHash hash;
  BlockHash parent_hash;
  std::span<const int32_t> token_ids;  // [block_size]
  std::string_view extra_keys;
};

inline constexpr uint32_t kKVSegmentVersion = 1;
inline constexpr size_t kKVSegmentHeaderBytes = 128;
inline constexpr size_t kMaxKVLabelBytes = 64;
// A header with larger values is not valid. With these limits, no size computed from a header overflows.
inline constexpr uint32_t kMaxKVBlockSize = uint32_t{1} << 16;
inline constexpr uint32_t kMaxKVSlots = uint32_t{1} << 16;
inline constexpr uint64_t kMaxKVPayloadBytes = uint64_t{1} << 32;

struct KVSegmentHeader {
  Hash128 identity;
  uint64_t id = 0;
  uint64_t payload_bytes = 0;  // 1..kMaxKVPayloadBytes
  uint32_t block_size = 0;     // 1..kMaxKVBlockSize
  uint32_t num_slots = 0;      // 1..kMaxKVSlots
  // Describes the identity for the user, for example the name of the model. May contain any bytes.
  std::array<char, kMaxKVLabelBytes> label{};
  uint64_t checksum = 0;  // set by EncodeKVHeader and DecodeKVHeader

  std::string_view Label() const;
  uint64_t HeadBytes() const;
  uint64_t HeadOffset(uint64_t slot) const { return kKVSegmentHeaderBytes + slot * HeadBytes(); }
  // slot may be num_slots; the result is then the size of the complete file.
  uint64_t PayloadOffset(uint64_t slot) const;
  uint64_t FileBytes() const { return PayloadOffset(num_slots); }
  // Returns the number of leading slots whose payloads are completely within a file of this size.
  uint32_t NumSlotsWithin(uint64_t file_bytes) const;
};

// Returns the largest number of slots with which a segment has at most `segment_bytes` bytes, but at least 1.
uint32_t KVSlotsFor(uint64_t segment_bytes, uint64_t payload_bytes, uint32_t block_size);

// Sets header.checksum and returns the encoded header.
std::array<std::byte, kKVSegmentHeaderBytes> EncodeKVHeader(KVSegmentHeader& header);
// Returns nullopt if the header is not valid or has another version.
std::optional<KVSegmentHeader> DecodeKVHeader(std::span<const std::byte, kKVSegmentHeaderBytes> bytes);

struct KVSlotHead {
  BlockHash hash;
  BlockHash parent_hash;
  Hash128 extra_keys;
  Hash128 payload_checksum;
  std::span<const int32_t> token_ids;  // [block_size]; in DecodeKVHead's argument

  // Returns true if the slot holds exactly this block.
  bool Matches(const KVBlockKey& key) const;
};

// Fills `bytes`, [HeadBytes()]. REQUIRES: key.token_ids has block_size tokens; header.checksum is set.
void EncodeKVHead(const KVSegmentHeader& header, const KVBlockKey& key, std::span<const std::byte> payload,
                  std::span<std::byte> bytes);
// Decodes `bytes`, [HeadBytes()] and aligned to 8 bytes. Returns nullopt if the slot is empty or the head is damaged.
std::optional<KVSlotHead> DecodeKVHead(const KVSegmentHeader& header, std::span<const std::byte> bytes);

// Returns the payload_checksum of a slot.
Hash128 KVPayloadChecksum(std::span<const std::byte> payload);

}  // namespace vllm
