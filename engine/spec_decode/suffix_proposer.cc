#include "engine/spec_decode/suffix_proposer.h"

#include <algorithm>
#include <array>

namespace vllm {
namespace {

// The share of a token comes from few samples, often from one, so it is scaled by n / (n + 1) for n equal tokens before
// it: a match of two tokens is weak evidence that the texts continue alike, and each further token makes it stronger.
// The drafted tokens before this one count, because the probability is that of this token once they are accepted.
float Probability(double share, size_t num_equal_tokens) {
  const auto n = static_cast<double>(num_equal_tokens);
  return static_cast<float>(share * n / (n + 1.0));
}

// How often a draft is extended by another search.
constexpr int kMaxSearches = 4;

// A single token is much weaker evidence than a match.
float SuccessorProbability(int32_t num_hits) {
  return 0.5F * static_cast<float>(num_hits + 1) / static_cast<float>(num_hits + 2);
}

}  // namespace

SuffixProposer::SuffixProposer(const SpeculativeConfig& config)
    : max_depth_(static_cast<size_t>(std::max<int64_t>(config.suffix_decoding_max_tree_depth, 0))),
      max_spec_factor_(config.suffix_decoding_max_spec_factor),
      min_token_prob_(config.suffix_decoding_min_token_prob),
      extends_drafts_(config.adaptive) {
  const int64_t max_requests = std::min(config.suffix_decoding_max_cached_requests, MatchFinder::kMaxSequences);
  if (max_requests > 0) global_.emplace(kMaxGlobalTokens, max_requests);
}

void SuffixProposer::Propose(std::span<const DraftRequest> requests, Drafts& drafts) {
  for (const DraftRequest& request : requests) {
    ProposeFor(request, drafts);
    drafts.EndRequest();
  }
}

void SuffixProposer::Finish(RequestId request_id, std::span<const int32_t> output_token_ids) {
  const auto it = histories_.find(request_id);
  if (it == histories_.end()) return;
  RequestHistory& history = it->second;
  if (global_.has_value()) {
    const size_t num_old = std::min(history.num_outputs, output_token_ids.size());
    global_->Append(history.global_sequence, output_token_ids.subspan(num_old));
  }
  histories_.erase(it);
}

const SuffixProposer::RequestHistory& SuffixProposer::Update(const DraftRequest& request) {
  const auto [it, is_new] = histories_.try_emplace(request.request_id);
  RequestHistory& history = it->second;
  if (is_new) {
    history.local.Reserve(static_cast<int64_t>(request.prompt_token_ids.size() + request.output_token_ids.size()));
    history.local.Append(history.local_sequence, request.prompt_token_ids);
    if (extends_drafts_) AddSuccessors(request.prompt_token_ids, history);
  }
  const std::span<const int32_t> outputs = request.output_token_ids.subspan(history.num_outputs);
  history.local.Append(history.local_sequence, outputs);
  if (extends_drafts_) AddSuccessors(outputs, history);
  if (global_.has_value()) global_->Append(history.global_sequence, outputs);
  history.num_outputs += outputs.size();
  return history;
}

void SuffixProposer::AddSuccessors(std::span<const int32_t> token_ids, RequestHistory& history) {
  for (const int32_t id : token_ids) {
    if (history.last_token >= 0) history.successors.Add(history.last_token, id);
    history.last_token = id;
  }
}

void SuffixProposer::ProposeFor(const DraftRequest& request, Drafts& drafts) {
  const RequestHistory& history = Update(request);
  const std::span<const int32_t> prompt = request.prompt_token_ids;
  const std::span<const int32_t> outputs = request.output_token_ids;
  const std::span<const int32_t> last_outputs = outputs.last(std::min(outputs.size(), max_depth_));
  const std::span<const int32_t> last_of_prompt =
      prompt.last(std::min(prompt.size(), max_depth_ - last_outputs.size()));
  context_.assign(last_of_prompt.begin(), last_of_prompt.end());
  context_.insert(context_.end(), last_outputs.begin(), last_outputs.end());

  int64_t max_drafts = request.max_drafts;
  double probability = 1;  // of all drafts so far
  for (int search = 0; search < (extends_drafts_ ? kMaxSearches : 1) && max_drafts > 0; ++search) {
    best_.token_ids.clear();
    best_.score = 0.0;
    best_.match_length = 0;
    ImproveDraft(history.local, max_drafts);
    if (global_.has_value()) ImproveDraft(*global_, max_drafts);
    for (size_t i = 0; i < best_.token_ids.size(); ++i) {
      const float estimate = Probability(best_.shares[i], best_.match_length + i);
      drafts.Add(best_.token_ids[i], estimate);
      probability *= static_cast<double>(estimate);
    }
    if (!extends_drafts_) return;
    if (best_.token_ids.empty()) {
      if (context_.empty()) return;
      const SuccessorTable::Successor successor = history.successors.Find(context_.back());
      if (successor.token_id < 0) return;
      best_.token_ids.push_back(successor.token_id);
      const float estimate = SuccessorProbability(successor.num_hits);
      drafts.Add(successor.token_id, estimate);
      probability *= static_cast<double>(estimate);
    }
    if (probability < min_token_prob_) return;
    max_drafts -= static_cast<int64_t>(best_.token_ids.size());
    context_.insert(context_.end(), best_.token_ids.begin(), best_.token_ids.end());
    if (context_.size() > max_depth_) {
      context_.erase(context_.begin(), context_.end() - static_cast<std::ptrdiff_t>(max_depth_));
    }
  }
}

void SuffixProposer::ImproveDraft(const MatchFinder& finder, int64_t max_drafts) {
  finder.Find(context_, matches_);
  for (size_t num_matches = 0; num_matches < matches_.size();) {
    const uint32_t length = matches_[num_matches].length;
    // The draft follows all matches that are at least this long.
    while (num_matches < matches_.size() && matches_[num_matches].length == length) ++num_matches;
    const double max_tokens =
        std::min(static_cast<double>(max_drafts), static_cast<double>(length) * max_spec_factor_ + 1e-6);
    const auto max_score = static_cast<double>(static_cast<int64_t>(max_tokens));
    // Shorter matches allow fewer tokens, so they cannot be better either.
    if (max_score < best_.score || (max_score == best_.score && length <= best_.match_length)) return;
    FollowMatches(finder, num_matches, static_cast<int64_t>(max_tokens));
    draft_.match_length = length;
    if (draft_.score > best_.score || (draft_.score == best_.score && length > best_.match_length)) {
      std::swap(draft_, best_);
    }
  }
}

void SuffixProposer::FollowMatches(const MatchFinder& finder, size_t num_matches, int64_t max_tokens) {
  struct Choice {
    int32_t token_id;
    size_t count;
  };
  std::array<Choice, MatchFinder::kMaxCandidates> choices;

  draft_.token_ids.clear();
  draft_.shares.clear();
  draft_.score = 0.0;
  positions_.clear();
  for (size_t i = 0; i < num_matches; ++i) positions_.push_back(matches_[i].next);
  double probability = 1.0;
  for (int64_t n = 0; n < max_tokens; ++n) {
    std::erase_if(positions_, [&](MatchFinder::Position p) { return finder.token(p) == MatchFinder::kNoToken; });
    if (positions_.empty()) return;
    size_t num_choices = 0;
    for (const MatchFinder::Position position : positions_) {
      const int32_t token_id = finder.token(position);
      size_t i = 0;
      while (i < num_choices && choices[i].token_id != token_id) ++i;
      if (i == num_choices) choices[num_choices++] = {token_id, 0};
      ++choices[i].count;
    }
    // Of equal counts the first wins, which belongs to the longest match or to the latest of them.
    size_t best = 0;
    for (size_t i = 1; i < num_choices; ++i) {
      if (choices[i].count > choices[best].count) best = i;
    }
    const double share = static_cast<double>(choices[best].count) / static_cast<double>(positions_.size());
    probability *= share;
    if (probability < min_token_prob_) return;
    const int32_t token_id = choices[best].token_id;
    draft_.token_ids.push_back(token_id);
    draft_.shares.push_back(share);
    draft_.score += probability;
    std::erase_if(positions_, [&](MatchFinder::Position p) { return finder.token(p) != token_id; });
    for (MatchFinder::Position& position : positions_) position = finder.Next(position);
  }
}

size_t SuffixProposer::memory_bytes() const {
  size_t bytes = global_.has_value() ? global_->memory_bytes() : 0;
  for (const auto& [id, history] : histories_) bytes += history.local.memory_bytes();
  return bytes;
}

}  // namespace vllm
