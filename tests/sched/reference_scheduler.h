// ReferenceScheduler: a simple reimplementation of the scheduler's rules, with vectors, full scans and exact prefixes
// instead of linked lists, hashes and counters. In every step, the real scheduler must make the same decisions and use
// the same block ids. Owned by a test; call it from one thread.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/vllm_config.h"
#include "engine/request/engine_core_request.h"
#include "engine/request/finish_reason.h"

namespace vllm {

class ReferenceScheduler {
 public:
  ReferenceScheduler(const SchedulerConfig& config, const CacheConfig& cache, int64_t max_model_len);

  bool AddRequest(const EngineCoreRequestPtr& request);
  void Abort(RequestId id);

  struct Step {
    std::vector<std::pair<RequestId, int64_t>> scheduled;
    std::vector<RequestId> admitted;
    std::vector<RequestId> preempted;  // first the unfinished requests whose admission was rolled back
  };
  Step Schedule();
  // Undoes `step`, which was cancelled, except for its preemptions.
  void RollBack(const Step& step);

  // Returns true if the last scheduled step computes the request's last token, so that the request samples.
  bool Samples(RequestId id) const;
  // Appends a sampled token. Returns the finish reason, or kNone if the request continues.
  FinishReason AppendToken(RequestId id, int32_t token_id);
  // Ends a request whose logits contained NaN, and evicts the blocks that it published.
  void Fail(RequestId id);

  struct Tracked {
    EngineCoreRequestPtr core;
    std::vector<int32_t> token_ids;  // prompt and output
    int64_t num_computed = 0;
    int64_t num_output = 0;
    int64_t num_cached = -1;  // tokens of the prefix-cache hit at the first admission; -1 before it
    int64_t num_preemptions = 0;
    std::vector<std::vector<int32_t>> blocks;  // [num_groups, num_blocks]; 0: outside the window
    std::vector<int64_t> contents;             // content ids of the leading blocks, all published or hit
  };
  const Tracked* Find(RequestId id) const;
  size_t num_requests() const { return requests_.size(); }
  size_t num_free_blocks() const { return free_.size(); }
  const std::vector<int32_t>& free_blocks() const { return free_; }
  std::vector<RequestId> running() const { return running_; }
  size_t num_waiting() const { return waiting_.size(); }

 private:
  struct Block {
    int64_t ref_cnt = 0;
    bool published = false;
    int64_t published_at = 0;
    size_t group = 0;
    int64_t content = 0;
    RequestId publisher = 0;
  };
  // The key of a block's contents. Blocks with equal keys get the same content id, until Fail removes the key.
  struct Content {
    int64_t parent = 0;
    std::vector<int32_t> token_ids;
    std::string salt;
    auto operator<=>(const Content&) const = default;
  };
  struct ContentState {
    int64_t id = 0;
    RequestId publisher = 0;  // the last request that published it
  };
  bool IsInteractive(RequestId id) const { return requests_.at(id).core->interactive; }
  bool ComesBefore(RequestId a, RequestId b) const;
  // Sorts the waiting requests: interactive ones first, and with the priority policy the others by priority.
  void SortWaiting();
  RequestId Victim() const;
  void ScheduleRunning(bool interactive, Step& step, int64_t& budget);
  int64_t num_steps_alone_ = 0;
  int64_t BlocksFor(int64_t num_tokens) const { return (num_tokens + block_size_ - 1) / block_size_; }
  // Returns an upper bound on the number of blocks that a sequence of num_blocks blocks holds at once in a group.
  int64_t Peak(size_t group, int64_t num_blocks) const;
  int64_t PeakOfAll(int64_t num_tokens) const;
  Content ContentOf(const Tracked& request, int64_t index, int64_t parent) const;
  // Returns the cached block with this content that was published first, or 0.
  int32_t Lookup(size_t group, int64_t content) const;
  // Returns one table per group; the tables are empty for a miss. Sets `contents` to the content ids of the hit.
  std::vector<std::vector<int32_t>> LongestHit(const Tracked& request, std::vector<int64_t>& contents) const;
  void RemoveSkippedBlocks(Tracked& request);
  void FreeBlocks(const std::vector<int32_t>& blocks);
  void Allocate(Tracked& request, int64_t num_tokens);
  void Publish(Tracked& request, int64_t num_tokens);
  void Unpublish(Tracked& request);
  void Release(Tracked& request);
  void Preempt(RequestId id, Step& step, int64_t& budget);
  void Finish(RequestId id);

  SchedulerConfig config_;
  bool caching_;
  int64_t block_size_;
  int64_t num_blocks_;
  int64_t max_model_len_;
  std::vector<int64_t> windows_;
  int64_t max_chunk_;
  std::map<RequestId, Tracked> requests_;
  std::vector<RequestId> waiting_;  // the next request first
  std::vector<RequestId> running_;
  std::vector<RequestId> rolled_back_;
  std::vector<Block> blocks_;  // [num_blocks + 1]
  std::vector<int32_t> free_;  // the next block to be reused first
  int64_t clock_ = 0;
  std::map<Content, ContentState> contents_;
  int64_t next_content_ = 1;
};

}  // namespace vllm
