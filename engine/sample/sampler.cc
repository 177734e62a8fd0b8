#include "engine/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/sample/random.h"
#include "engine/sample/row_ops.h"

namespace vllm {

namespace {

size_t NumLogprobs(int64_t num_logprobs, size_t vocab_size) {
  return num_logprobs < 0 ? vocab_size : std::min(static_cast<size_t>(num_logprobs), vocab_size);
}

bool PrecedesInLogprobs(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Appends the logprobs of a position, of which `top` has at most k.
void AppendEntries(int32_t token_id, float logprob, int32_t rank, std::span<const std::pair<int32_t, float>> top,
                   size_t k, Logprobs& out) {
  out.width = k + 1;
  out.token_ids.push_back(token_id);
  out.logprobs.push_back(logprob);
  out.ranks.push_back(rank);
  for (size_t i = 0; i < k; ++i) {
    out.token_ids.push_back(i < top.size() ? top[i].first : -1);
    out.logprobs.push_back(i < top.size() ? top[i].second : -std::numeric_limits<float>::infinity());
  }
}

}  // namespace

Sampler::Sampler(int64_t vocab_size, const kernels::Kernels& kernels, bool processed_logprobs)
    : vocab_size_(vocab_size),
      processed_logprobs_(processed_logprobs),
      row_kernels_(kernels.rows),
      processors_(vocab_size),
      top_k_top_p_sampler_(static_cast<size_t>(vocab_size), *kernels.rows) {
  raw_logits_.reserve(static_cast<size_t>(vocab_size));
}

bool Sampler::ChangesLogits(const SamplingRow& row) {
  return !row.bitmask.empty() || LogitsProcessors::IsNeeded(*row.params, row.output_token_ids.size());
}

Sampler::Support Sampler::Process(const SamplingRow& row, std::string& error) {
  const SamplingParams& params = *row.params;
  ApplyBitmask(row.bitmask, row.logits);
  if (!top_k_top_p_sampler_.Load(row.logits)) {
    error = "the model's logits contain NaN or infinity";
    return Support::kNone;
  }
  if (LogitsProcessors::IsNeeded(params, row.output_token_ids.size())) {
    processors_.Apply(params, row.prompt_token_ids, row.output_token_ids, row.must_stop, row.logits);
    if (!top_k_top_p_sampler_.Load(row.logits)) {
      error = "logit_bias or penalties make a logit NaN or infinite";
      return Support::kNone;
    }
  }
  if (top_k_top_p_sampler_.max() == -std::numeric_limits<float>::infinity()) {
    error = "no token remains to sample: all logits are -inf";
    return Support::kNone;
  }
  if (params.greedy()) return Support::kArgMax;

  inverse_temperature_ = static_cast<float>(1.0 / params.temperature);
  // min_p and top-k each drop the tokens below some logit, so their order does not matter. Applying the higher of the
  // two thresholds applies both.
  bool has_threshold = false;
  Threshold threshold;
  if (params.top_k > 0 && params.top_k < vocab_size_) {
    // Tokens whose logits are -inf are never sampled.
    threshold.logit = std::max(top_k_top_p_sampler_.KthLargest(static_cast<size_t>(params.top_k)),
                               std::numeric_limits<float>::lowest());
    has_threshold = true;
  }
  if (params.min_p > 0.0) {
    // exp((x - max) / t) >= min_p, solved for x
    float min_logit = static_cast<float>(static_cast<double>(top_k_top_p_sampler_.max()) +
                                         params.temperature * std::log(params.min_p));
    threshold.logit = std::max(threshold.logit, min_logit);
    has_threshold = true;
  }
  if (has_threshold) {
    top_k_top_p_sampler_.Gather(threshold);
    total_ = top_k_top_p_sampler_.ComputeWeights(inverse_temperature_);
    if (params.top_p < 1.0) {
      top_k_top_p_sampler_.Restrict(top_k_top_p_sampler_.TopPOfCandidates(params.top_p, total_));
      total_ = top_k_top_p_sampler_.ComputeWeights(inverse_temperature_);
    }
    return Support::kCandidates;
  }
  total_ = top_k_top_p_sampler_.ComputeAllWeights(inverse_temperature_);
  if (!(params.top_p < 1.0)) return Support::kVocabulary;
  top_k_top_p_sampler_.Gather(top_k_top_p_sampler_.TopPOfRow(params.top_p, total_, inverse_temperature_));
  total_ = top_k_top_p_sampler_.ComputeWeights(inverse_temperature_);
  return Support::kCandidates;
}

// Inverts the cumulative distribution, with tokens in ascending order of id. The search adds the same block sums in the
// same order as ComputeAllWeights, so it finds the right block. Within the block, rounding may keep the sum below the
// target. The block's last token with a positive weight is drawn in that case.
int32_t Sampler::Draw(Support support, const SamplingRow& row) const {
  if (support == Support::kArgMax) return top_k_top_p_sampler_.ArgMax();
  uint64_t position = row.prompt_token_ids.size() + row.output_token_ids.size();
  double target = UniformAt(row.params->seed.value_or(0), position) * total_;
  double sum = 0.0;
  int32_t last = -1;
  if (support == Support::kCandidates) {
    for (const Candidate& candidate : top_k_top_p_sampler_.candidates()) {
      sum += static_cast<double>(candidate.weight);
      if (sum > target) return candidate.id;
      if (candidate.weight > 0.0f) last = candidate.id;
    }
    return last;
  }
  std::span<const double> block_sums = top_k_top_p_sampler_.block_sums();
  size_t block = 0;
  size_t last_block = 0;
  for (; block < block_sums.size() && !(sum + block_sums[block] > target); ++block) {
    sum += block_sums[block];
    if (block_sums[block] > 0.0) last_block = block;
  }
  if (block == block_sums.size()) block = last_block;
  size_t end = std::min((block + 1) * kernels::kRowBlock, row.logits.size());
  for (size_t i = block * kernels::kRowBlock; i < end; ++i) {
    float weight = Weight(row.logits[i], top_k_top_p_sampler_.max(), inverse_temperature_);
    sum += static_cast<double>(weight);
    if (weight > 0.0f) last = static_cast<int32_t>(i);
    if (sum > target) break;
  }
  return last;
}

int32_t Sampler::Sample(const SamplingRow& row, Logprobs* logprobs, std::string& error) {
  const bool needs_logprobs = logprobs != nullptr && row.params->logprobs.has_value();
  const bool save_raw_logits = needs_logprobs && !processed_logprobs_ && ChangesLogits(row);
  if (row.forced_token_id >= 0) {
    if (!top_k_top_p_sampler_.Load(row.logits)) {
      error = "the model's logits contain NaN or infinity";
      return -1;
    }
    if (needs_logprobs && processed_logprobs_) {
      const std::pair<int32_t, float> certain(row.forced_token_id, 0.0f);
      const size_t k = NumLogprobs(*row.params->logprobs, row.logits.size());
      AppendEntries(certain.first, 0.0f, 1, {&certain, std::min<size_t>(k, 1)}, k, *logprobs);
    } else if (needs_logprobs) {
      AppendLogprobs(row.logits, row.forced_token_id, *row.params->logprobs, *logprobs);
    }
    return row.forced_token_id;
  }
  if (save_raw_logits) raw_logits_.assign(row.logits.begin(), row.logits.end());
  Support support = Process(row, error);
  if (support == Support::kNone) return -1;
  int32_t token_id = Draw(support, row);
  if (needs_logprobs && processed_logprobs_) {
    AppendProcessedLogprobs(support, row, token_id, *logprobs);
  } else if (needs_logprobs) {
    AppendLogprobs(save_raw_logits ? std::span<const float>(raw_logits_) : row.logits, token_id, *row.params->logprobs,
                   *logprobs);
  }
  return token_id;
}

void Sampler::AppendProcessedLogprobs(Support support, const SamplingRow& row, int32_t token_id, Logprobs& out) {
  TopKTopPSampler& sampler = top_k_top_p_sampler_;
  const size_t k = NumLogprobs(*row.params->logprobs, row.logits.size());
  const float chosen = row.logits[static_cast<size_t>(token_id)];
  auto rank = static_cast<int32_t>(CountAtLeast(*row_kernels_, row.logits, chosen));
  if (support == Support::kArgMax) {
    inverse_temperature_ = 1.0f;
    total_ = sampler.ComputeAllWeights(inverse_temperature_);
  }
  const double scale = static_cast<double>(inverse_temperature_);
  const double log_sum = static_cast<double>(sampler.max()) * scale + std::log(total_);
  const auto logprob = [&](float logit) { return static_cast<float>(static_cast<double>(logit) * scale - log_sum); };
  if (support != Support::kCandidates && k > 0) {
    sampler.Gather({.logit = std::max(sampler.KthLargest(k), std::numeric_limits<float>::lowest()), .id = 0});
  } else if (support == Support::kCandidates) {
    const auto is_at_least = [&](const Candidate& candidate) { return candidate.logit >= chosen; };
    rank = static_cast<int32_t>(std::count_if(sampler.candidates().begin(), sampler.candidates().end(), is_at_least));
  }
  std::vector<std::pair<int32_t, float>> top;
  if (k > 0) {
    std::vector<Candidate>& candidates = sampler.candidates();
    const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(std::min(k, candidates.size()));
    std::partial_sort(candidates.begin(), end, candidates.end(), PrecedesInLogprobs);
    for (auto it = candidates.begin(); it != end; ++it) top.emplace_back(it->id, logprob(it->logit));
  }
  AppendEntries(token_id, logprob(chosen), rank, top, k, out);
}

void Sampler::AppendLogprobs(std::span<const float> logits, int32_t token_id, int64_t num_logprobs, Logprobs& out) {
  const size_t k = NumLogprobs(num_logprobs, logits.size());
  out.width = k + 1;
  out.token_ids.push_back(token_id);
  bool valid = top_k_top_p_sampler_.Load(logits);
  double max = static_cast<double>(top_k_top_p_sampler_.max());
  if (!valid || max == -std::numeric_limits<double>::infinity()) return AppendInvalid(k, out);

  double log_sum = max + std::log(top_k_top_p_sampler_.ComputeAllWeights(1.0f));
  auto logprob = [&](float logit) { return static_cast<float>(static_cast<double>(logit) - log_sum); };
  float chosen = logits[static_cast<size_t>(token_id)];
  out.logprobs.push_back(logprob(chosen));
  out.ranks.push_back(static_cast<int32_t>(CountAtLeast(*row_kernels_, logits, chosen)));
  if (k == 0) return;

  top_k_top_p_sampler_.Gather({.logit = top_k_top_p_sampler_.KthLargest(k), .id = 0});
  std::vector<Candidate>& top = top_k_top_p_sampler_.candidates();
  std::partial_sort(top.begin(), top.begin() + static_cast<std::ptrdiff_t>(k), top.end(), PrecedesInLogprobs);
  for (size_t i = 0; i < k; ++i) {
    out.token_ids.push_back(top[i].id);
    out.logprobs.push_back(logprob(top[i].logit));
  }
}

void Sampler::AppendInvalid(size_t k, Logprobs& out) const {
  for (size_t i = 0; i < k; ++i) out.token_ids.push_back(static_cast<int32_t>(i));
  out.logprobs.insert(out.logprobs.end(), k + 1, std::numeric_limits<float>::quiet_NaN());
  out.ranks.push_back(static_cast<int32_t>(vocab_size_));
}

std::vector<double> Sampler::Distribution(const SamplingRow& row) {
  std::vector<double> probs(row.logits.size(), 0.0);
  std::string error;
  switch (Process(row, error)) {
    case Support::kNone:
      break;
    case Support::kArgMax:
      probs[static_cast<size_t>(top_k_top_p_sampler_.ArgMax())] = 1.0;
      break;
    case Support::kCandidates:
      for (const Candidate& c : top_k_top_p_sampler_.candidates()) {
        probs[static_cast<size_t>(c.id)] = static_cast<double>(c.weight) / total_;
      }
      break;
    case Support::kVocabulary:
      for (size_t i = 0; i < probs.size(); ++i) {
        probs[i] =
            static_cast<double>(Weight(row.logits[i], top_k_top_p_sampler_.max(), inverse_temperature_)) / total_;
      }
      break;
  }
  return probs;
}

}  // namespace vllm
