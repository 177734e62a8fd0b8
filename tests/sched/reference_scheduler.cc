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
      windows_(cache.group_windows),
      max_chunk_(config.long_prefill_token_threshold > 0
                     ? std::min(config.long_prefill_token_threshold, config.max_num_batched_tokens)
                     : config.max_num_batched_tokens),
      blocks_(static_cast<size_t>(cache.num_blocks) + 1) {
  for (int32_t id = 1; id <= num_blocks_; ++id) free_.push_back(id);
}

bool ReferenceScheduler::AddRequest(const EngineCoreRequestPtr& core) {
  const auto num_prompt = static_cast<int64_t>(core->prompt_token_ids.size());
  if (num_prompt + 1 > max_model_len_) return false;
  if (PeakOfAll(num_prompt + 1) > num_blocks_) return false;
  const int64_t threshold = config_.long_prefill_token_threshold;
  const int64_t chunk = threshold > 0 && threshold < num_prompt ? threshold : num_prompt;
  if (!config_.enable_chunked_prefill && chunk > config_.max_num_batched_tokens) return false;

  const RequestId id = core->request_id;
  Tracked& request = requests_[id];
  request.core = core;
  request.token_ids = core->prompt_token_ids;
  request.blocks.resize(windows_.size());
  waiting_.push_back(id);
  SortWaiting();
  return true;
}

bool ReferenceScheduler::ComesBefore(RequestId a, RequestId b) const {
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
  std::erase(rolled_back_, id);
  requests_.erase(id);
}

ReferenceScheduler::Step ReferenceScheduler::Schedule() {
  Step step;
  step.preempted.swap(rolled_back_);
  const size_t num_rolled_back = step.preempted.size();
  int64_t budget = config_.max_num_batched_tokens;
  const int64_t threshold = config_.long_prefill_token_threshold;

  // While an interactive request has more than one token to compute, only interactive requests run.
  bool any_interactive = false;
  bool interactive_only = false;
  for (const auto& [id, request] : requests_) {
    if (!request.core->interactive) continue;
    any_interactive = true;
    const bool is_waiting = std::find(waiting_.begin(), waiting_.end(), id) != waiting_.end();
    interactive_only |= is_waiting || static_cast<int64_t>(request.token_ids.size()) - request.num_computed > 1;
  }
  if (!any_interactive) num_steps_alone_ = 0;
  interactive_only |= num_steps_alone_ > 0;
  num_steps_alone_ = std::max<int64_t>(0, num_steps_alone_ - 1);
  if (any_interactive && !interactive_only && config_.enable_chunked_prefill) {
    budget = std::min(budget, std::max<int64_t>(256, static_cast<int64_t>(running_.size())));
  }
  ScheduleRunning(true, step, budget);
  const int64_t budget_of_others = budget;
  if (!interactive_only) ScheduleRunning(false, step, budget);

  // Admit waiting requests, unless this step has preempted a request.
  const bool admits = step.preempted.size() == num_rolled_back;
  while (admits && !waiting_.empty() && budget > 0) {
    const RequestId id = waiting_.front();
    if (interactive_only && !IsInteractive(id)) break;
    // An interactive request takes the place of others.
    const auto preempt_for_it = [&] {
      if (!IsInteractive(id) || running_.empty() || IsInteractive(Victim())) return false;
      Preempt(Victim(), step, budget);
      return true;
    };
    if (static_cast<int64_t>(running_.size()) >= config_.max_num_seqs) {
      if (!preempt_for_it()) break;
      continue;
    }
    Tracked& request = requests_.at(id);
    std::vector<int64_t> contents;
    const std::vector<std::vector<int32_t>> hit = LongestHit(request, contents);
    const auto num_hit = static_cast<int64_t>(contents.size()) * block_size_;
    const auto num_tokens = static_cast<int64_t>(request.token_ids.size());
    int64_t num_new = num_tokens - num_hit;
    if (threshold > 0 && num_new > threshold) num_new = threshold;
    if (!config_.enable_chunked_prefill && num_new > budget && num_new <= config_.max_num_batched_tokens) break;
    if (num_new > budget) num_new = budget;

    auto free_without_hit = static_cast<int64_t>(free_.size());
    int64_t num_reserved = 0;
    for (size_t g = 0; g < windows_.size(); ++g) {
      int64_t num_blocks = BlocksFor(num_tokens);
      for (const int32_t block : hit[g]) {
        const bool is_free = std::find(free_.begin(), free_.end(), block) != free_.end();
        free_without_hit -= is_free;
        num_blocks -= block == 0;
        num_reserved -= block != 0 && !is_free;
      }
      num_reserved += Peak(g, num_blocks);
    }
    const bool fits = !config_.scheduler_reserve_full_isl || num_reserved <= static_cast<int64_t>(free_.size());
    const int64_t num_required = BlocksFor(num_new) * static_cast<int64_t>(windows_.size());
    if (!fits || num_required > free_without_hit) {
      if (!preempt_for_it()) break;
      continue;
    }

    for (size_t g = 0; g < windows_.size(); ++g) {
      for (const int32_t block : hit[g]) {
        std::erase(free_, block);
        ++blocks_[static_cast<size_t>(block)].ref_cnt;
        request.blocks[g].push_back(block);
      }
    }
    request.contents = contents;
    request.num_computed = num_hit;
    if (request.num_preemptions == 0) request.num_cached = num_hit;
    Allocate(request, num_hit + num_new);
    waiting_.erase(waiting_.begin());
    running_.push_back(id);
    step.admitted.push_back(id);
    step.scheduled.push_back({id, num_new});
    budget -= num_new;
  }

  if (any_interactive && !interactive_only) num_steps_alone_ = std::min<int64_t>(2, (budget_of_others - budget) / 64);
  for (const auto& [id, num_tokens] : step.scheduled) requests_.at(id).num_computed += num_tokens;
  return step;
}

void ReferenceScheduler::ScheduleRunning(bool interactive, Step& step, int64_t& budget) {
  const int64_t threshold = config_.long_prefill_token_threshold;
  // Schedule the running requests in order. Preemption changes the list, so each iteration looks for the first
  // unvisited request.
  std::vector<RequestId> visited;
  bool stopped = false;
  while (budget > 0 && !stopped) {
    const auto next = std::find_if(running_.begin(), running_.end(), [&](RequestId id) {
      return IsInteractive(id) == interactive && std::find(visited.begin(), visited.end(), id) == visited.end();
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

    RemoveSkippedBlocks(request);
    const int64_t num_required =
        (BlocksFor(request.num_computed + num_new) - static_cast<int64_t>(request.blocks[0].size())) *
        static_cast<int64_t>(windows_.size());
    bool preempted_itself = false;
    while (!preempted_itself && num_required > static_cast<int64_t>(free_.size())) {
      const RequestId victim = Victim();
      Preempt(victim, step, budget);
      preempted_itself = victim == id;
    }
    if (preempted_itself) {
      stopped = !step.scheduled.empty();
      continue;
    }
    Allocate(request, request.num_computed + num_new);
    step.scheduled.push_back({id, num_new});
    budget -= num_new;
  }
}

RequestId ReferenceScheduler::Victim() const {
  std::vector<RequestId> candidates;
  for (const RequestId id : running_) {
    if (!IsInteractive(id)) candidates.push_back(id);
  }
  if (candidates.empty()) candidates = running_;
  if (config_.policy == SchedulingPolicy::kFcfs) return candidates.back();
  RequestId victim = candidates.front();
  for (const RequestId other : candidates) {
    const EngineCoreRequest& a = *requests_.at(other).core;
    const EngineCoreRequest& b = *requests_.at(victim).core;
    if (std::tie(a.priority, a.arrival_time) > std::tie(b.priority, b.arrival_time)) victim = other;
  }
  return victim;
}

void ReferenceScheduler::SortWaiting() {
  std::stable_sort(waiting_.begin(), waiting_.end(), [&](RequestId a, RequestId b) {
    if (IsInteractive(a) || IsInteractive(b)) return IsInteractive(a) && !IsInteractive(b);
    return config_.policy == SchedulingPolicy::kPriority && ComesBefore(a, b);
  });
}

void ReferenceScheduler::RollBack(const Step& step) {
  for (auto it = step.scheduled.rbegin(); it != step.scheduled.rend(); ++it) {
    if (!requests_.contains(it->first)) continue;
    Tracked& request = requests_.at(it->first);
    request.num_computed -= it->second;
    Unpublish(request);
  }
  for (auto id = step.admitted.rbegin(); id != step.admitted.rend(); ++id) {
    if (!requests_.contains(*id)) continue;
    Release(requests_.at(*id));
    requests_.at(*id).num_computed = 0;
    std::erase(running_, *id);
    waiting_.insert(waiting_.begin(), *id);
    rolled_back_.push_back(*id);
  }
  SortWaiting();
}

void ReferenceScheduler::Unpublish(Tracked& request) {
  while (static_cast<int64_t>(request.contents.size()) > request.num_computed / block_size_) {
    request.contents.pop_back();
    for (const std::vector<int32_t>& table : request.blocks) {
      blocks_[static_cast<size_t>(table[request.contents.size()])].published = false;
    }
  }
}

void ReferenceScheduler::Preempt(RequestId id, Step& step, int64_t& budget) {
  Tracked& request = requests_.at(id);
  for (size_t i = 0; i < step.scheduled.size(); ++i) {
    if (step.scheduled[i].first != id) continue;
    budget += step.scheduled[i].second;
    step.scheduled.erase(step.scheduled.begin() + static_cast<std::ptrdiff_t>(i));
    // The blocks that the request was to fill in this step stay unfilled.
    Unpublish(request);
    break;
  }
  Release(request);
  request.num_computed = 0;
  ++request.num_preemptions;
  std::erase(running_, id);
  waiting_.insert(waiting_.begin(), id);
  SortWaiting();
  step.preempted.push_back(id);
}

void ReferenceScheduler::Allocate(Tracked& request, int64_t num_tokens) {
  for (std::vector<int32_t>& table : request.blocks) {
    while (static_cast<int64_t>(table.size()) < BlocksFor(num_tokens)) {
      const int32_t id = free_.front();
      free_.erase(free_.begin());
      blocks_[static_cast<size_t>(id)] = Block();
      blocks_[static_cast<size_t>(id)].ref_cnt = 1;
      table.push_back(id);
    }
  }
  if (caching_) Publish(request, num_tokens);
}

int64_t ReferenceScheduler::Peak(size_t group, int64_t num_blocks) const {
  const int64_t window = windows_[group];
  return window == 0 ? num_blocks : std::min(num_blocks, BlocksFor(window - 1 + max_chunk_) + 1);
}

int64_t ReferenceScheduler::PeakOfAll(int64_t num_tokens) const {
  int64_t sum = 0;
  for (size_t g = 0; g < windows_.size(); ++g) sum += Peak(g, BlocksFor(num_tokens));
  return sum;
}

ReferenceScheduler::Content ReferenceScheduler::ContentOf(const Tracked& request, int64_t index, int64_t parent) const {
  const auto begin = request.token_ids.begin() + static_cast<std::ptrdiff_t>(index * block_size_);
  return {parent, {begin, begin + static_cast<std::ptrdiff_t>(block_size_)}, request.core->cache_salt};
}

void ReferenceScheduler::Publish(Tracked& request, int64_t num_tokens) {
  for (auto i = static_cast<int64_t>(request.contents.size()); i < num_tokens / block_size_; ++i) {
    ContentState& content = contents_[ContentOf(request, i, i == 0 ? 0 : request.contents.back())];
    if (content.id == 0) content.id = next_content_++;
    content.publisher = request.core->request_id;
    request.contents.push_back(content.id);
    for (size_t g = 0; g < windows_.size(); ++g) {
      Block& block = blocks_[static_cast<size_t>(request.blocks[g][static_cast<size_t>(i)])];
      block.published = true;
      block.published_at = ++clock_;
      block.group = g;
      block.content = content.id;
      block.publisher = request.core->request_id;
    }
  }
}

int32_t ReferenceScheduler::Lookup(size_t group, int64_t content) const {
  int32_t found = 0;
  for (int32_t id = 1; id <= num_blocks_; ++id) {
    const Block& block = blocks_[static_cast<size_t>(id)];
    if (!block.published || block.group != group || block.content != content) continue;
    if (found == 0 || block.published_at < blocks_[static_cast<size_t>(found)].published_at) found = id;
  }
  return found;
}

std::vector<std::vector<int32_t>> ReferenceScheduler::LongestHit(const Tracked& request,
                                                                 std::vector<int64_t>& contents) const {
  contents.clear();
  std::vector<std::vector<int32_t>> hit(windows_.size());
  const SamplingParams& params = request.core->sampling_params;
  if (!caching_ || params.prompt_logprobs.has_value() || params.skip_reading_prefix_cache) return hit;
  for (int64_t i = 0; (i + 1) * block_size_ < static_cast<int64_t>(request.token_ids.size()); ++i) {
    const auto content = contents_.find(ContentOf(request, i, i == 0 ? 0 : contents.back()));
    if (content == contents_.end()) break;
    contents.push_back(content->second.id);
  }
  // Find the longest prefix for which every group has all blocks that the next token attends to.
  for (;; contents.pop_back()) {
    const auto length = static_cast<int64_t>(contents.size()) * block_size_;
    bool all = true;
    for (size_t g = 0; g < windows_.size(); ++g) {
      hit[g].assign(contents.size(), 0);
      const int64_t first = windows_[g] == 0 ? 0 : std::max<int64_t>(0, length - windows_[g] + 1);
      for (auto i = static_cast<size_t>(first / block_size_); i < contents.size(); ++i) {
        hit[g][i] = Lookup(g, contents[i]);
        all = all && hit[g][i] != 0;
      }
    }
    if (all) return hit;
  }
}

void ReferenceScheduler::RemoveSkippedBlocks(Tracked& request) {
  for (size_t g = 0; g < windows_.size(); ++g) {
    if (windows_[g] == 0) continue;
    std::vector<int32_t> skipped;
    for (size_t i = 0; i < request.blocks[g].size(); ++i) {
      const auto last_position = static_cast<int64_t>(i + 1) * block_size_ - 1;
      // The next token is at position num_computed and attends to windows_[g] positions, including its own.
      if (last_position > request.num_computed - windows_[g]) break;
      if (request.blocks[g][i] != 0) skipped.push_back(request.blocks[g][i]);
      request.blocks[g][i] = 0;
    }
    FreeBlocks(skipped);
  }
}

void ReferenceScheduler::FreeBlocks(const std::vector<int32_t>& blocks) {
  std::vector<int32_t> first, last;  // blocks for the front and for the end of the free queue
  for (auto id = blocks.rbegin(); id != blocks.rend(); ++id) {
    if (*id == 0) continue;
    Block& block = blocks_[static_cast<size_t>(*id)];
    if (--block.ref_cnt == 0) (block.published ? last : first).push_back(*id);
  }
  free_.insert(free_.begin(), first.begin(), first.end());
  free_.insert(free_.end(), last.begin(), last.end());
}

void ReferenceScheduler::Release(Tracked& request) {
  for (std::vector<int32_t>& table : request.blocks) {
    FreeBlocks(table);
    table.clear();
  }
  request.contents.clear();
}

bool ReferenceScheduler::Samples(RequestId id) const {
  const Tracked& request = requests_.at(id);
  return request.num_computed == static_cast<int64_t>(request.token_ids.size());
}

FinishReason ReferenceScheduler::AppendToken(RequestId id, int32_t token_id) {
  Tracked& request = requests_.at(id);
  const SamplingParams& params = request.core->sampling_params;
  request.token_ids.push_back(token_id);
  ++request.num_output;
  const auto num_tokens = static_cast<int64_t>(request.token_ids.size());
  const bool is_full = num_tokens >= max_model_len_ || PeakOfAll(num_tokens) > num_blocks_;

  FinishReason reason = FinishReason::kNone;
  if (is_full || (params.max_tokens.has_value() && request.num_output >= *params.max_tokens)) {
    reason = FinishReason::kLength;
  }
  const auto& stops = params.stop_token_ids;
  if (std::find(stops.begin(), stops.end(), token_id) != stops.end()) reason = FinishReason::kStop;
  if (!params.ignore_eos && params.eos_token_id == token_id) reason = FinishReason::kStop;
  if (request.num_output < params.min_tokens) reason = is_full ? FinishReason::kLength : FinishReason::kNone;
  if (reason != FinishReason::kNone) Finish(id);
  return reason;
}

void ReferenceScheduler::Fail(RequestId id) {
  for (int32_t block_id = 1; block_id <= num_blocks_; ++block_id) {
    Block& block = blocks_[static_cast<size_t>(block_id)];
    if (!block.published || block.publisher != id) continue;
    block.published = false;
    std::erase_if(contents_, [&](const auto& entry) { return entry.second.id == block.content; });
    if (block.ref_cnt == 0) {
      std::erase(free_, block_id);
      free_.insert(free_.begin(), block_id);
    }
  }
  std::erase_if(contents_, [&](const auto& entry) { return entry.second.publisher == id; });
  Finish(id);
}

const ReferenceScheduler::Tracked* ReferenceScheduler::Find(RequestId id) const {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : &it->second;
}

}  // namespace vllm
