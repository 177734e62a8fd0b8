// KVBlockStore: full blocks of KV cache on disk. Several processes share a directory of segment files
// (kv_segment_format.h), and the blocks outlive them. A cache: blocks may disappear at any time, and nothing is synced.
// Owned by the thread that does the engine's disk I/O; one thread at a time, except Contains.
//
// Read never returns wrong contents: it compares the tokens, the extra keys and the hash of the prefix, and verifies
// the checksums. The prefix itself is compared only by its 128-bit hash. To rule out collisions of prefixes, append a
// second digest of the prefix to KVBlockKey::extra_keys.
//
// The size of the directory, including other models, other processes and unrelated files, stays below max_bytes, unless
// unrelated files alone exceed it. A process reserves space for a whole segment before it writes to the segment. If
// there is not enough space, it deletes the least recently used segments, except those that are being written.
//
// Invariant 1: each entry of index_ refers to a segment in segments_ and a slot that held a valid head when it was
// scanned or written.
// Invariant 2: a segment's `blocks` contains the hash of each entry of index_ that refers to it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/config/hash.h"
#include "engine/kv_store/kv_directory.h"
#include "engine/kv_store/kv_segment_file.h"
#include "engine/kv_store/kv_segment_format.h"

namespace vllm {

struct KVBlockStoreStats {
  int64_t num_blocks_read = 0;
  int64_t num_blocks_written = 0;
  int64_t num_blocks_rejected = 0;  // found in the index, but damaged, unreadable or a block with another key
  int64_t bytes_read = 0;           // payload
  int64_t bytes_written = 0;        // payload
  int64_t bytes_evicted = 0;        // files deleted by this process
};

class KVBlockStore {
 public:
  struct Options {
    std::string directory;      // its parents are created, too
    int64_t max_bytes = 0;      // of the whole directory
    std::string identity;       // everything that a payload depends on, except the key: model, dtype, layout, rank, ...
    std::string label;          // the model's name, for `cache list`; at most kMaxKVLabelBytes are kept
    int64_t payload_bytes = 0;  // per block
    int64_t block_size = 0;     // tokens per block
    int64_t max_indexed_blocks = int64_t{1} << 20;  // about 100 bytes of memory each; further blocks are not found
  };

  // Opens or creates the directory, deletes segments until it is within the limit, and finds the blocks of this
  // identity. Throws ModelError if the directory must not be trusted (symbolic link, owner, mode) and ResourceError if
  // it cannot be created. REQUIRES: 1 <= payload_bytes <= kMaxKVPayloadBytes; 1 <= block_size <= kMaxKVBlockSize.
  explicit KVBlockStore(Options options);

  // Returns true if a block with this hash was found by the last Refresh, or written since. Does no I/O. O(1). Any
  // thread may call it.
  bool Contains(const BlockHash& hash) const {
    const std::lock_guard lock(index_mutex_);
    return index_.contains(hash);
  }
  // Reads a block into `payload`, [payload_bytes]. Returns false if it is absent, damaged or has another key; then it
  // is forgotten, a damaged block is also erased from its file, and the contents of `payload` are unspecified.
  bool Read(const KVBlockKey& key, std::span<std::byte> payload);
  // Writes a block. Returns false if the store has a block with this hash, if writing is off or there is no space now,
  // or if the key or the payload has the wrong size. A write error turns writing off and leaves a warning.
  bool Write(const KVBlockKey& key, std::span<const std::byte> payload);

  // Finds the blocks that other processes have written, and forgets those of deleted segments. O(number of files), plus
  // O(new blocks). Call it before a lookup or a batch of writes; RefreshAfter limits how often it has an effect.
  void Refresh();
  void RefreshAfter(std::chrono::milliseconds interval);

  int64_t num_blocks() const { return static_cast<int64_t>(index_.size()); }
  bool is_writing_on() const { return is_writing_on_; }
  const KVBlockStoreStats& stats() const { return stats_; }
  // Returns the next warning for the user, or "". There are at most two: one for the first file that is not trusted,
  // and one when writing turns off.
  std::string TakeWarning();

 private:
  using Clock = std::chrono::steady_clock;

  struct Segment {
    std::string name;
    bool is_ignored = false;  // not valid, not trusted or of another identity
    bool has_header = false;
    KVSegmentHeader header;
    uint32_t next_slot = 0;         // the slots before it have been scanned
    int64_t seen_bytes = -1;        // size of the file at the last scan
    int64_t num_scans = 0;          // at this size
    std::vector<BlockHash> blocks;  // may contain hashes that index_ no longer has, or has in another segment
    std::optional<Clock::time_point> touched;
  };
  struct Location {
    Segment* segment = nullptr;
    uint32_t slot = 0;
  };
  struct HashOfBlockHash {
    size_t operator()(const BlockHash& hash) const { return static_cast<size_t>(MixBits(hash.lo ^ hash.hi)); }
  };
  // The segment that this process appends to.
  struct Writer {
    KVSegmentFile file;
    Segment* segment = nullptr;
    uint32_t next_slot = 0;
  };

  bool IsOurs(const KVSegmentHeader& header) const;
  void Scan(Segment& segment, int64_t file_bytes);
  void AddBlock(Segment& segment, uint32_t slot, const BlockHash& hash);
  void Forget(const std::string& segment_name);
  // Opens the file of a block for reading. Returns null if it is gone or not trusted.
  KVSegmentFile* FileOf(const Segment& segment);
  // Deletes segments until `bytes` more fit, and forgets them. REQUIRES: the directory is locked.
  bool MakeRoom(int64_t bytes);
  // Makes writer_ a segment with an empty slot: resumes one that no process writes, or creates one. Returns false if
  // this is not possible now, or turns writing off.
  bool OpenWriter();
  bool ResumeSegment(const KVDirectory::File& file);
  void WarnAboutFile(const std::string& warning);
  void TurnWritingOff(const std::string& why);

  const Options options_;
  const Hash128 identity_;
  const uint32_t num_slots_;  // of new segments
  KVDirectory directory_;
  std::map<std::string, Segment> segments_;  // by file name; the addresses are stable
  // Held to change index_, and by Contains. The owner's thread reads index_ without it.
  mutable std::mutex index_mutex_;
  std::unordered_map<BlockHash, Location, HashOfBlockHash> index_;
  std::optional<Writer> writer_;
  bool is_writing_on_ = true;
  Clock::time_point next_attempt_{};  // OpenWriter has failed; do not try again before this time
  Clock::time_point last_refresh_{};
  // The only segment that is kept open for reading. More would keep the space of deleted files in use.
  std::string open_name_;
  KVSegmentFile open_file_;
  KVBlockStoreStats stats_;
  std::deque<std::string> warnings_;
  bool has_warned_about_file_ = false;
};

}  // namespace vllm
