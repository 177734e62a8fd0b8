#include "tests/sched/reference_scheduler.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

namespace vllm {

ReferenceScheduler::ReferenceScheduler(const SchedulerConfig& config, const CacheConfig& cache, int64_t max_model_len)
    : config_(config),
      caching_(cache.enable_prefix_caching),
      block_size_(cache.block_size),
      num_blocks_(cache.num_blocks),
      max_model_len_(max_model_len),
      blocks_(static_cast<size_t>(cache.num_blocks) + 1) {
  for (int32_t id = 1; id <= num_blocks_; ++id) free_.push_back(id);
}

bool ReferenceScheduler::AddRequest(const EngineCoreRequestPtr& core) {
  const auto num_prompt = static_cast<int64_t>(core->prompt_token_ids.size());
  if (num_prompt + 1 > max_model_len_) return false;
  if (BlocksFor(num_prompt + 1) > num_blocks_) return false;
  const int64_t threshold = config_.long_prefill_token_threshold;
  const int64_t chunk = threshold > 0 && threshold < num_prompt ? threshold : num_prompt;
  if (!config_.enable_chunked_prefill && chunk > config_.max_num_batched_tokens) return false;

  const RequestId id = core->request_id;
  Tracked& request = requests_[id];
  request.core = core;
  request.token_ids = core->prompt_token_ids;
  waiting_.push_back(id);
  if (config_.policy == SchedulingPolicy::kPriority) {
    std::sort(waiting_.begin(), waiting_.end(), [&](RequestId a, RequestId b) { return Comes(a, b); });
  }
  return true;
}

bool ReferenceScheduler::Comes(RequestId a, RequestId b) const {
  const EngineCoreRequest& x = *requests_.at(a).core;
  const EngineCoreRequest& y = *requests_.at(b).core;
  return std::tie(x.priority, x.arrival_time, a) < std::tie(y.priority, y.arrival_time, b);
}

void ReferenceScheduler::Abort(RequestId id) {
  if (requests_.count(id) > 0) Finish(id);
}

void ReferenceScheduler::Finish(RequestId id) {
  Release(requests_.at(id));
  std::erase(running_, id);
  std::erase(waiting_, id);
  requests_.erase(id);
}

ReferenceScheduler::Step ReferenceScheduler::Schedule() {
  Step step;
  int64_t budget = config_.max_num_batched_tokens;
  const int64_t threshold = config_.long_prefill_token_threshold;

  // Those that run, in order. The list changes under preemption, so each round looks for the first not yet visited.
  std::vector<RequestId> visited;
  bool stopped = false;
  while (budget > 0 && !stopped) {
    const auto next = std::find_if(running_.begin(), running_.end(), [&](RequestId id) {
      return std::find(visited.begin(), visited.end(), id) == visited.end();
    });
    if (next == running_.end()) break;
    const RequestId id = *next;
    visited.push_back(id);
    Tracked& request = requests_.at(id);
    int64_t num_new = static_cast<int64_t>(request.token_ids.size()) - request.num_computed;
    if (threshold > 0 && num_new > threshold) num_new = threshold;
    if (num_new > budget) num_new = budget;
    if (num_new > max_model_len_ - request.num_computed - 1) num_new = max_model_len_ - request.num_computed - 1;
    if (num_new <= 0) continue;

    const int64_t want = BlocksFor(request.num_computed + num_new) - static_cast<int64_t>(request.blocks.size());
    bool gone = false;
    while (!gone && want > static_cast<int64_t>(free_.size())) {
      RequestId victim = running_.back();
      if (config_.policy == SchedulingPolicy::kPriority) {
        victim = running_.front();
        for (const RequestId other : running_) {
          const EngineCoreRequest& a = *requests_.at(other).core;
          const EngineCoreRequest& b = *requests_.at(victim).core;
          if (std::tie(a.priority, a.arrival_time) > std::tie(b.priority, b.arrival_time)) victim = other;
        }
      }
      Preempt(victim, step, budget);
      gone = victim == id;
    }
    if (gone) {
      stopped = !step.scheduled.empty();
      continue;
    }
    Take(request, request.num_computed + num_new);
    step.scheduled.push_back({id, num_new});
    budget -= num_new;
  }

  // Those that wait, unless somebody had to give way.
  while (step.preempted.empty() && !waiting_.empty() && budget > 0 &&
         static_cast<int64_t>(running_.size()) < config_.max_num_seqs) {
    const RequestId id = waiting_.front();
    Tracked& request = requests_.at(id);
    const std::vector<int32_t> hit = LongestHit(request);
    const auto num_hit = static_cast<int64_t>(hit.size()) * block_size_;
    const auto num_tokens = static_cast<int64_t>(request.token_ids.size());
    int64_t num_new = num_tokens - num_hit;
    if (threshold > 0 && num_new > threshold) num_new = threshold;
    if (!config_.enable_chunked_prefill && num_new > budget && num_new <= config_.max_num_batched_tokens) break;
    if (num_new > budget) num_new = budget;

    int64_t free_without_hit = 0;
    for (const int32_t block : free_) free_without_hit += std::find(hit.begin(), hit.end(), block) == hit.end();
    const auto watermark = static_cast<int64_t>(config_.watermark * static_cast<double>(num_blocks_));
    const int64_t keep = running_.empty() ? 0 : watermark;
    const int64_t must_fit = config_.scheduler_reserve_full_isl ? num_tokens : num_hit + num_new;
    if (BlocksFor(must_fit) - static_cast<int64_t>(hit.size()) + keep > free_without_hit) break;

    for (const int32_t block : hit) {
      std::erase(free_, block);
      ++blocks_[static_cast<size_t>(block)].users;
      request.blocks.push_back(block);
      request.contents.push_back(blocks_[static_cast<size_t>(block)].content);
    }
    request.num_computed = num_hit;
    if (request.num_cached < 0) request.num_cached = num_hit;
    Take(request, num_hit + num_new);
    waiting_.erase(waiting_.begin());
    running_.push_back(id);
    step.scheduled.push_back({id, num_new});
    budget -= num_new;
  }

  for (const auto& [id, num_tokens] : step.scheduled) requests_.at(id).num_computed += num_tokens;
  return step;
}

void ReferenceScheduler::Preempt(RequestId id, Step& step, int64_t& budget) {
  for (size_t i = 0; i < step.scheduled.size(); ++i) {
    if (step.scheduled[i].first != id) continue;
    budget += step.scheduled[i].second;
    step.scheduled.erase(step.scheduled.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  Tracked& request = requests_.at(id);
  Release(request);
  request.num_computed = 0;
  ++request.num_preemptions;
  std::erase(running_, id);
  waiting_.insert(waiting_.begin(), id);
  if (config_.policy == SchedulingPolicy::kPriority) {
    std::sort(waiting_.begin(), waiting_.end(), [&](RequestId a, RequestId b) { return Comes(a, b); });
  }
  step.preempted.push_back(id);
}

void ReferenceScheduler::Take(Tracked& request, int64_t num_tokens) {
  while (static_cast<int64_t>(request.blocks.size()) < BlocksFor(num_tokens)) {
    const int32_t id = free_.front();
    free_.erase(free_.begin());
    blocks_[static_cast<size_t>(id)] = Block();
    blocks_[static_cast<size_t>(id)].users = 1;
    request.blocks.push_back(id);
  }
  if (caching_) Publish(request, num_tokens);
}

void ReferenceScheduler::Publish(Tracked& request, int64_t num_tokens) {
  for (auto i = static_cast<int64_t>(request.contents.size()); i < num_tokens / block_size_; ++i) {
    const int64_t parent = i == 0 ? 0 : request.contents.back();
    const int32_t same = Lookup(request, i, parent);
    Block& block = blocks_[static_cast<size_t>(request.blocks[static_cast<size_t>(i)])];
    block.content = same != 0 ? blocks_[static_cast<size_t>(same)].content : next_content_++;
    block.published = true;
    block.published_at = ++clock_;
    block.parent_content = parent;
    block.salt = request.core->cache_salt;
    block.prefix.assign(request.token_ids.begin(),
                        request.token_ids.begin() + static_cast<std::ptrdiff_t>((i + 1) * block_size_));
    block.publisher = request.core->request_id;
    request.contents.push_back(block.content);
  }
}

int32_t ReferenceScheduler::Lookup(const Tracked& request, int64_t index, int64_t parent) const {
  const auto length = static_cast<size_t>((index + 1) * block_size_);
  int32_t found = 0;
  for (int32_t id = 1; id <= num_blocks_; ++id) {
    const Block& block = blocks_[static_cast<size_t>(id)];
    if (!block.published || block.parent_content != parent || block.prefix.size() != length) continue;
    if (block.salt != request.core->cache_salt) continue;
    if (!std::equal(block.prefix.begin(), block.prefix.end(), request.token_ids.begin())) continue;
    if (found == 0 || block.published_at < blocks_[static_cast<size_t>(found)].published_at) found = id;
  }
  return found;
}

std::vector<int32_t> ReferenceScheduler::LongestHit(const Tracked& request) const {
  std::vector<int32_t> hit;
  const SamplingParams& params = request.core->sampling_params;
  if (!caching_ || params.prompt_logprobs.has_value() || params.skip_reading_prefix_cache) return hit;
  int64_t parent = 0;
  for (int64_t i = 0; (i + 1) * block_size_ < static_cast<int64_t>(request.token_ids.size()); ++i) {
    const int32_t id = Lookup(request, i, parent);
    if (id == 0) break;
    hit.push_back(id);
    parent = blocks_[static_cast<size_t>(id)].content;
  }
  return hit;
}

void ReferenceScheduler::Release(Tracked& request) {
  std::vector<int32_t> first, last;  // of the free queue
  for (auto id = request.blocks.rbegin(); id != request.blocks.rend(); ++id) {
    Block& block = blocks_[static_cast<size_t>(*id)];
    if (--block.users == 0) (block.published ? last : first).push_back(*id);
  }
  free_.insert(free_.begin(), first.begin(), first.end());
  free_.insert(free_.end(), last.begin(), last.end());
  request.blocks.clear();
  request.contents.clear();
}

bool ReferenceScheduler::Samples(RequestId id) const {
  const Tracked& request = requests_.at(id);
  return request.num_computed == static_cast<int64_t>(request.token_ids.size());
}

FinishReason ReferenceScheduler::Sampled(RequestId id, int32_t token_id) {
  Tracked& request = requests_.at(id);
  const SamplingParams& params = request.core->sampling_params;
  request.token_ids.push_back(token_id);
  ++request.num_output;
  const auto num_tokens = static_cast<int64_t>(request.token_ids.size());
  const bool no_room = num_tokens >= max_model_len_ || num_tokens > num_blocks_ * block_size_;

  FinishReason reason = FinishReason::kNone;
  if (no_room || (params.max_tokens.has_value() && request.num_output >= *params.max_tokens)) {
    reason = FinishReason::kLength;
  }
  const auto& stops = params.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), token_id) != stops.end()) reason = FinishReason::kStop;
  if (!params.ignore_eos && params.eos_token_id == token_id) reason = FinishReason::kStop;
  if (request.num_output < params.min_tokens) reason = no_room ? FinishReason::kLength : FinishReason::kNone;
  if (reason != FinishReason::kNone) Finish(id);
  return reason;
}

void ReferenceScheduler::Fail(RequestId id) {
  for (int32_t block_id = 1; block_id <= num_blocks_; ++block_id) {
    Block& block = blocks_[static_cast<size_t>(block_id)];
    if (!block.published || block.publisher != id) continue;
    block.published = false;
    if (block.users == 0) {
      std::erase(free_, block_id);
      free_.insert(free_.begin(), block_id);
    }
  }
  Finish(id);
}

const ReferenceScheduler::Tracked* ReferenceScheduler::Find(RequestId id) const {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : &it->second;
}

}  // namespace vllm
