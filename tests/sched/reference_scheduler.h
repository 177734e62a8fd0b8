// ReferenceScheduler: the scheduler's rules once more, written to be read: vectors, full scans and exact prefixes in
// place of linked lists, hashes and counters. The real one must agree with it step by step, down to block ids.
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
    std::vector<RequestId> preempted;  // first those that a rolled-back step had admitted
  };
  Step Schedule();
  // The step was not finished.
  void RollBack(const Step& step);

  // Whether the request, as scheduled last, samples in this step: all its tokens are computed.
  bool Samples(RequestId id) const;
  // How it ended, kNone when it goes on.
  FinishReason Sampled(RequestId id, int32_t token_id);
  // Its result was not a number: it ends with kError and what it published is withdrawn.
  void Fail(RequestId id);

  struct Tracked {
    EngineCoreRequestPtr core;
    std::vector<int32_t> token_ids;  // prompt and output
    int64_t num_computed = 0;
    int64_t num_output = 0;
    int64_t num_cached = -1;  // hit at first admission
    int64_t num_preemptions = 0;
    std::vector<std::vector<int32_t>> blocks;  // [num_groups], 0 where a window has left a block behind
    std::vector<int64_t> contents;             // content ids of its leading published or hit blocks
  };
  const Tracked* Find(RequestId id) const;
  size_t num_requests() const { return requests_.size(); }
  size_t num_free_blocks() const { return free_.size(); }
  const std::vector<int32_t>& free_blocks() const { return free_; }
  std::vector<RequestId> running() const { return running_; }
  size_t num_waiting() const { return waiting_.size(); }

 private:
  struct Block {
    int64_t users = 0;
    bool published = false;
    int64_t published_at = 0;
    size_t group = 0;
    int64_t content = 0;
    RequestId publisher = 0;
  };
  // The same parent content, tokens and salt are the same content, until it is found to be poisoned.
  struct Content {
    int64_t parent = 0;
    std::vector<int32_t> token_ids;
    std::string salt;
    auto operator<=>(const Content&) const = default;
  };
  struct ContentState {
    int64_t id = 0;
    RequestId publisher = 0;  // the last
  };
  bool Comes(RequestId a, RequestId b) const;
  int64_t BlocksFor(int64_t num_tokens) const { return (num_tokens + block_size_ - 1) / block_size_; }
  // Blocks of a sequence of num_blocks blocks that a group holds at most.
  int64_t Peak(size_t group, int64_t num_blocks) const;
  int64_t PeakOfAll(int64_t num_tokens) const;
  Content ContentOf(const Tracked& request, int64_t index, int64_t parent) const;
  // The published block of this content; 0 when there is none.
  int32_t Lookup(size_t group, int64_t content) const;
  // A table a group; empty tables for a miss. `contents` are those of the tables' blocks.
  std::vector<std::vector<int32_t>> LongestHit(const Tracked& request, std::vector<int64_t>& contents) const;
  void Trim(Tracked& request);
  void GiveBack(const std::vector<int32_t>& blocks);
  void Take(Tracked& request, int64_t num_tokens);
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
  std::vector<RequestId> waiting_;  // next first
  std::vector<RequestId> running_;
  std::vector<RequestId> rolled_back_;
  std::vector<Block> blocks_;  // [num_blocks + 1]
  std::vector<int32_t> free_;  // next to be taken first
  int64_t clock_ = 0;
  std::map<Content, ContentState> contents_;
  int64_t next_content_ = 1;
};

}  // namespace vllm
