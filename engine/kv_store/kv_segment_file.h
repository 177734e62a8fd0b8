// KVSegmentFile: an open segment file of the KV block store. It is read with pread and never mapped, so a file that
// another process truncates cannot crash the reader. Owned by a KVBlockStore or a maintenance function. Movable; one
// thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/kv_store/kv_segment_format.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {

class KVSegmentFile {
 public:
  enum class State {
    kValid,
    kIncomplete,  // shorter than a header; its writer has created it just now, or was killed
    kInvalid,     // not a segment, damaged, or of another version
    kUnreadable,  // the file does not exist or an I/O error occurred
  };
  enum class SlotState {
    kMatches,
    kEmpty,
    kOtherBlock,  // a valid head with another key
    kDamaged,     // damaged or truncated
    kUnreadable,  // an I/O error occurred
  };

  // A file that does not exist.
  KVSegmentFile() = default;
  // Takes over an open file and reads its header.
  explicit KVSegmentFile(tokenizer::UniqueFd fd);

  State state() const { return state_; }
  int fd() const { return fd_.get(); }
  // REQUIRES, for this and all functions below except IsUnlinked: state() is kValid.
  const KVSegmentHeader& header() const { return header_; }

  // Returns the current size of the file, or 0 if it cannot be read.
  uint64_t FileBytes() const;
  bool IsUnlinked() const;
  // Marks the segment as the most recently used one.
  void Touch() const;

  // Locks the file for writing. Returns false if another open file description has a lock.
  bool LockForWriting() const;

  // Writes the header of a new file. Returns 0 or an errno value.
  static int WriteHeader(int fd, KVSegmentHeader& header);
  // Calls f(slot, head) for the valid heads among slots first..end-1, in order. Stops at an I/O error.
  // REQUIRES: end <= header().num_slots.
  void ScanHeads(uint32_t first, uint32_t end, const std::function<void(uint32_t slot, const KVSlotHead& head)>& f);
  // Reads the block in `slot` into `payload`, [payload_bytes], and verifies its checksums. Compares it with `*key`
  // first, unless `key` is null. The contents of `payload` are unspecified unless the result is kMatches.
  SlotState Read(uint32_t slot, const KVBlockKey* key, std::span<std::byte> payload);
  // Fills `slot`. Returns 0 or an errno value. After an error, the slot is empty and the file ends before its payload.
  int Write(uint32_t slot, const KVBlockKey& key, std::span<const std::byte> payload);
  // Empties `slot`. REQUIRES: the file is open for writing.
  void Erase(uint32_t slot);

 private:
  tokenizer::UniqueFd fd_;
  State state_ = State::kUnreadable;
  KVSegmentHeader header_;
  std::vector<std::byte> heads_;  // buffer for one or more heads
};

}  // namespace vllm
