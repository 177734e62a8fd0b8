// DiskKVConnector: keeps the KV of finished requests on disk, and loads it for prompts that begin with the same tokens,
// also in later processes. It turns requests into the keys of a KVBlockStore, copies blocks between the KV cache and
// the I/O thread's buffers, and decides what is worth loading. Owned by EngineCore; engine thread only.
//
// A block's key has its tokens, its hash, its parent's hash and, as extra keys, a second digest of the whole prefix and
// the cache salt. The two digests are independent, so one prefix is not taken for another even if one of them collides.
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
  void CopyIn(int64_t index, int32_t block_id) override;
  int64_t Save(Request& request, std::span<KVCacheBlock* const> blocks) override;

  // Waits until a load has ended, but at most for max_time.
  void WaitForLoad(std::chrono::milliseconds max_time);
  // Call this after each step, so that the time to compute tokens is known.
  void RecordStep(int64_t num_tokens, std::chrono::duration<double> time);
  std::string TakeWarning() { return thread_.TakeWarning(); }

 private:
  // Loads that have not been returned by NextFinishedLoad.
  struct PendingLoad {
    int64_t load_id = 0;
    std::vector<BlockHash> hashes;
  };

  // Extends digests_ to the request's first num_blocks blocks.
  void ComputeDigests(Request& request, int64_t num_blocks);
  KVDiskBlock MakeBlock(Request& request, int64_t block_index);
  bool IsWorthLoading(int64_t num_blocks);

  const int64_t block_size_;
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
