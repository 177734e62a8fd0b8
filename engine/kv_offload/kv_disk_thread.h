// KVDiskThread: the thread that reads and writes the KV blocks on disk, and its two queues. It does one load or save at
// a time, loads first. Owned by a DiskKVConnector; call members from the engine thread only.
//
// The payloads of queued blocks are in memory, so both queues are bounded. A block that waits to be written can be
// loaded from there. A save that does not fit is dropped, because the store is a cache. An error of the disk never
// reaches the engine: blocks are then not found, or not saved.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/kv_store/kv_block_store.h"
#include "engine/threading/thread_annotations.h"

namespace vllm {

// A block with its own copies of what identifies it.
struct KVDiskBlock {
  BlockHash hash;
  BlockHash parent_hash;
  std::vector<int32_t> token_ids;
  std::string extra_keys;
  uint32_t group = 0;                    // of the KV cache; part of the hash and the extra keys if there are several
  int64_t index = 0;                     // within the sequence
  std::unique_ptr<std::byte[]> payload;  // [payload_bytes]; null until the block is loaded

  KVBlockKey Key() const { return {hash, parent_hash, token_ids, extra_keys}; }
  // Returns true if the keys are equal.
  bool Is(const KVDiskBlock& other) const {
    return hash == other.hash && parent_hash == other.parent_hash && token_ids == other.token_ids &&
           extra_keys == other.extra_keys;
  }
};

// Blocks of one sequence, sorted by index.
struct KVDiskLoad {
  int64_t load_id = 0;
  int64_t first_block = 0;
  std::vector<KVDiskBlock> blocks;  // once loaded, only the leading blocks that were read and verified
};

class KVDiskThread {
 public:
  // Limits of the memory for payloads that wait to be written, and for those that are loaded at the same time.
  static constexpr int64_t kMaxSaveBytes = int64_t{128} << 20;
  static constexpr int64_t kMaxLoadBytes = int64_t{256} << 20;

  // Opens the store and starts the thread. Throws as KVBlockStore does, and std::system_error.
  explicit KVDiskThread(const KVBlockStore::Options& options);
  // Drops queued loads and writes queued blocks.
  ~KVDiskThread();
  KVDiskThread(const KVDiskThread&) = delete;
  KVDiskThread& operator=(const KVDiskThread&) = delete;

  size_t payload_bytes() const { return payload_bytes_; }
  // Returns true if the block is in the store or waits to be written.
  bool Contains(const BlockHash& hash) EXCLUDES(mutex_);

  // Lets the thread look for blocks that other processes have written, unless it has done so in the last second.
  void Refresh() EXCLUDES(mutex_);

  bool HasRoomToSave() EXCLUDES(mutex_);
  void Save(KVDiskBlock block) EXCLUDES(mutex_);

  // Returns how many more blocks may be loaded now.
  int64_t MaxBlocksToLoad() EXCLUDES(mutex_);
  void Load(KVDiskLoad load) EXCLUDES(mutex_);
  // Returns the next load that has ended. Its payloads count towards the limit until they are Released.
  std::optional<KVDiskLoad> TakeLoad() EXCLUDES(mutex_);
  void Released(int64_t num_blocks) EXCLUDES(mutex_);
  // Waits until TakeLoad has a result or the deadline has passed.
  void WaitForLoad(std::chrono::steady_clock::time_point deadline) EXCLUDES(mutex_);

  // Returns the recent average time to load a block, and how many blocks are queued to be loaded; 0 s: unknown.
  struct LoadCost {
    std::chrono::duration<double> per_block{0};
    int64_t num_queued_blocks = 0;
  };
  LoadCost load_cost() EXCLUDES(mutex_);
  std::string TakeWarning() EXCLUDES(mutex_);

 private:
  struct HashOfBlockHash {
    size_t operator()(const BlockHash& hash) const { return static_cast<size_t>(MixBits(hash.lo ^ hash.hi)); }
  };

  void ThreadMain();
  // Each does one task of its queue. They hold the mutex only to take the task and to return its result.
  void LoadNext() EXCLUDES(mutex_);
  void SaveNext() EXCLUDES(mutex_);
  // Fills the block's payload. Returns false if the block is absent or damaged.
  bool Read(KVDiskBlock& block) EXCLUDES(mutex_);
  void RefreshStore();
  void TakeWarningsOfStore() EXCLUDES(mutex_);
  int64_t BytesOf(size_t num_blocks) const { return static_cast<int64_t>(num_blocks * payload_bytes_); }

  const size_t payload_bytes_;
  KVBlockStore store_;  // used by thread_ only, except its Contains
  Mutex mutex_;
  CondVar has_task_;
  CondVar has_loaded_;
  bool stop_ GUARDED_BY(mutex_) = false;
  bool must_refresh_ GUARDED_BY(mutex_) = false;
  std::chrono::steady_clock::time_point next_refresh_ GUARDED_BY(mutex_){};
  std::deque<KVDiskLoad> loads_ GUARDED_BY(mutex_);
  std::deque<KVDiskLoad> loaded_ GUARDED_BY(mutex_);
  std::deque<std::shared_ptr<const KVDiskBlock>> saves_ GUARDED_BY(mutex_);
  // Those of saves_ and the one that is being written.
  std::unordered_map<BlockHash, std::shared_ptr<const KVDiskBlock>, HashOfBlockHash> saving_ GUARDED_BY(mutex_);
  int64_t save_bytes_ GUARDED_BY(mutex_) = 0;  // of saving_
  int64_t load_bytes_ GUARDED_BY(mutex_) = 0;  // of all loads that are not Released
  int64_t num_queued_blocks_ GUARDED_BY(mutex_) = 0;
  std::chrono::duration<double> time_per_block_ GUARDED_BY(mutex_){0};
  std::deque<std::string> warnings_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace vllm
