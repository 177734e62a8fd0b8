// DiskKVConnector: keeps the KV of finished requests on disk, and loads it for prompts that begin with the same tokens,
// also in later processes. It turns requests into the keys of a KVBlockStore, copies blocks between the KV cache and
// the I/O thread's buffers, and decides what is worth loading. Owned by EngineCore; engine thread only.
//
// A block's key has its tokens, its hash, its parent's hash and, as extra keys, a second digest of the whole prefix,
// the cache salt and, if there are several, its KV-cache group. The two digests are independent, so one prefix is not
// taken for another even if one of them collides.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/executor/executor.h"
#include "engine/kv_offload/kv_disk_thread.h"
#include "engine/sched/kv_connector.h"

namespace vllm {

class DiskKVConnector final : public KVConnector {
 public:
  // Opens the store. `executor` is borrowed; its KV cache is allocated. Throws ModelError, ResourceError or
  // std::system_error. REQUIRES: config.kv_disk_cache.enabled(); WhyNot returns "".
  DiskKVConnector(const VllmConfig& config, Executor& executor);

  // Returns why this engine cannot have a cache of KV blocks on disk, or "".
  static std::string WhyNot(const VllmConfig& config, const Executor& executor);

  StartedLoad StartLoad(Request& request, int64_t first_block, int64_t max_blocks) override;
  const FinishedLoad* NextFinishedLoad() override;
  void CopyIn(size_t i, int32_t block_id) override;
  int64_t Save(Request& request, std::span<const SequenceBlock> blocks) override;

  // Waits until a load has ended, but at most for max_time.
  void WaitForLoad(std::chrono::milliseconds max_time);
  // Call this after each step, so that the time to compute tokens is known.
  void RecordStep(int64_t num_tokens, std::chrono::duration<double> time);
  std::string TakeWarning() { return thread_.TakeWarning(); }

 private:
  // Loads that have not been returned by NextFinishedLoad.
  struct PendingLoad {
    int64_t load_id = 0;
    std::vector<BlockHash> hashes;  // of the request's blocks
  };

  // Extends digests_ to the request's first num_blocks blocks.
  void ComputeDigests(Request& request, int64_t num_blocks);
  // Returns the hash under which the store has a block of a group.
  static BlockHash StoredHash(const BlockHash& hash, size_t group);
  KVDiskBlock MakeBlock(Request& request, size_t group, int64_t block_index);
  // Returns the largest number of blocks from first_block on, at most hashes.size(), after which a request could
  // continue with what the store has.
  int64_t NumLoadable(int64_t first_block, std::span<const BlockHash> hashes);
  // Returns the first block of a group that must be loaded to continue after `end` blocks, if first_block blocks are
  // cached.
  int64_t FirstNeeded(size_t group, int64_t first_block, int64_t end) const;
  bool IsWorthLoading(int64_t num_blocks, int64_t num_tokens);

  const int64_t block_size_;
  const std::vector<int64_t> group_windows_;  // [num_groups], in tokens; 0: full attention
  const bool loads_only_if_faster_;
  Executor& executor_;
  KVDiskThread thread_;
  int64_t last_load_id_ = 0;
  std::vector<PendingLoad> pending_;
  std::optional<KVDiskLoad> current_;  // the load that NextFinishedLoad returned
  FinishedLoad finished_;
  std::chrono::duration<double> time_per_token_{0};  // recent average of large steps; 0: unknown
  double patience_ = 1.0;                            // scales the estimated time of a load
  std::vector<uint64_t> digests_;                    // scratch: of the request's prefixes, by block
  std::vector<int32_t> scratch_;
};

}  // namespace vllm
