#include "engine/kv_store/kv_segment_format.h"

#include <algorithm>
#include <cstring>

namespace vllm {
namespace {

constexpr uint64_t kHeaderMagic = 0x31474553564d4c56;  // "VLMVSEG1" on a little-endian machine
constexpr uint64_t kHeadMagic = 0x4b434f4c424b5656;    // "VVKBLOCK" on a little-endian machine
constexpr uint64_t kPageBytes = 4096;

struct StoredHeader {
  uint64_t magic = kHeaderMagic;
  uint32_t version = kKVSegmentVersion;
  uint32_t block_size = 0;
  uint32_t num_slots = 0;
  uint32_t zero = 0;
  uint64_t payload_bytes = 0;
  uint64_t id = 0;
  Hash128 identity;
  std::array<char, kMaxKVLabelBytes> label{};
  uint64_t checksum = 0;
};
static_assert(sizeof(StoredHeader) == kKVSegmentHeaderBytes);

// The part of a head before the token ids.
struct StoredHead {
  uint64_t magic = kHeadMagic;
  BlockHash hash;
  BlockHash parent_hash;
  Hash128 extra_keys;
  Hash128 payload_checksum;
};
static_assert(sizeof(StoredHead) == 72);

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t HeaderChecksum(const StoredHeader& stored) {
  return Hash64({reinterpret_cast<const char*>(&stored), offsetof(StoredHeader, checksum)});
}

// bytes: the head without its checksum.
uint64_t HeadChecksum(const KVSegmentHeader& header, std::span<const std::byte> bytes) {
  return Hash64(AsText(bytes)) ^ header.checksum;
}

}  // namespace

std::string_view KVSegmentHeader::Label() const { return {label.begin(), std::find(label.begin(), label.end(), '\0')}; }

uint64_t KVSegmentHeader::HeadBytes() const {
  const uint64_t token_bytes = (uint64_t{block_size} * sizeof(int32_t) + 7) / 8 * 8;
  return sizeof(StoredHead) + token_bytes + sizeof(uint64_t);
}

uint64_t KVSegmentHeader::PayloadOffset(uint64_t slot) const {
  return (HeadOffset(num_slots) + kPageBytes - 1) / kPageBytes * kPageBytes + slot * payload_bytes;
}

uint32_t KVSegmentHeader::NumSlotsWithin(uint64_t file_bytes) const {
  const uint64_t begin = PayloadOffset(0);
  if (file_bytes < begin) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>((file_bytes - begin) / payload_bytes, num_slots));
}

uint32_t KVSlotsFor(uint64_t segment_bytes, uint64_t payload_bytes, uint32_t block_size) {
  KVSegmentHeader header;
  header.payload_bytes = payload_bytes;
  header.block_size = block_size;
  const uint64_t fixed = kKVSegmentHeaderBytes + kPageBytes;
  const uint64_t num_slots =
      segment_bytes <= fixed ? 0 : (segment_bytes - fixed) / (header.HeadBytes() + payload_bytes);
  return static_cast<uint32_t>(std::clamp<uint64_t>(num_slots, 1, kMaxKVSlots));
}

std::array<std::byte, kKVSegmentHeaderBytes> EncodeKVHeader(KVSegmentHeader& header) {
  StoredHeader stored;
  stored.block_size = header.block_size;
  stored.num_slots = header.num_slots;
  stored.payload_bytes = header.payload_bytes;
  stored.id = header.id;
  stored.identity = header.identity;
  stored.label = header.label;
  stored.checksum = HeaderChecksum(stored);
  header.checksum = stored.checksum;
  std::array<std::byte, kKVSegmentHeaderBytes> bytes;
  std::memcpy(bytes.data(), &stored, sizeof(stored));
  return bytes;
}

std::optional<KVSegmentHeader> DecodeKVHeader(std::span<const std::byte, kKVSegmentHeaderBytes> bytes) {
  StoredHeader stored;
  std::memcpy(&stored, bytes.data(), sizeof(stored));
  if (stored.magic != kHeaderMagic || stored.version != kKVSegmentVersion) return std::nullopt;
  if (stored.checksum != HeaderChecksum(stored)) return std::nullopt;
  // The checksum does not protect against a file that somebody made on purpose.
  if (stored.block_size < 1 || stored.block_size > kMaxKVBlockSize) return std::nullopt;
  if (stored.num_slots < 1 || stored.num_slots > kMaxKVSlots) return std::nullopt;
  if (stored.payload_bytes < 1 || stored.payload_bytes > kMaxKVPayloadBytes) return std::nullopt;
  KVSegmentHeader header;
  header.identity = stored.identity;
  header.label = stored.label;
  header.id = stored.id;
  header.payload_bytes = stored.payload_bytes;
  header.block_size = stored.block_size;
  header.num_slots = stored.num_slots;
  header.checksum = stored.checksum;
  return header;
}

bool KVSlotHead::Matches(const KVBlockKey& key) const {
  return hash == key.hash && parent_hash == key.parent_hash &&
         std::equal(token_ids.begin(), token_ids.end(), key.token_ids.begin(), key.token_ids.end()) &&
         extra_keys == HashBytes128(key.extra_keys);
}

void EncodeKVHead(const KVSegmentHeader& header, const KVBlockKey& key, std::span<const std::byte> payload,
                  std::span<std::byte> bytes) {
  StoredHead stored;
  stored.hash = key.hash;
  stored.parent_hash = key.parent_hash;
  stored.extra_keys = HashBytes128(key.extra_keys);
  stored.payload_checksum = KVPayloadChecksum(payload);
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  std::memcpy(bytes.data(), &stored, sizeof(stored));
  std::memcpy(bytes.data() + sizeof(stored), key.token_ids.data(), key.token_ids.size_bytes());
  const std::span<std::byte> covered = bytes.first(bytes.size() - sizeof(uint64_t));
  const uint64_t checksum = HeadChecksum(header, covered);
  std::memcpy(bytes.data() + covered.size(), &checksum, sizeof(checksum));
}

std::optional<KVSlotHead> DecodeKVHead(const KVSegmentHeader& header, std::span<const std::byte> bytes) {
  StoredHead stored;
  std::memcpy(&stored, bytes.data(), sizeof(stored));
  if (stored.magic != kHeadMagic) return std::nullopt;
  const std::span<const std::byte> covered = bytes.first(bytes.size() - sizeof(uint64_t));
  uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + covered.size(), sizeof(checksum));
  if (checksum != HeadChecksum(header, covered)) return std::nullopt;
  KVSlotHead head;
  head.hash = stored.hash;
  head.parent_hash = stored.parent_hash;
  head.extra_keys = stored.extra_keys;
  head.payload_checksum = stored.payload_checksum;
  head.token_ids = {reinterpret_cast<const int32_t*>(bytes.data() + sizeof(stored)), header.block_size};
  return head;
}

Hash128 KVPayloadChecksum(std::span<const std::byte> payload) { return HashBytes128(AsText(payload)); }

}  // namespace vllm
