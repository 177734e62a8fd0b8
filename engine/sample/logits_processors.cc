#include "engine/sample/logits_processors.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace vllm {
namespace {

constexpr float kMasked = -std::numeric_limits<float>::infinity();

bool InRow(int32_t id, std::span<const float> logits) { return id >= 0 && static_cast<size_t>(id) < logits.size(); }

void Mask(int32_t id, std::span<float> logits) {
  if (InRow(id, logits)) logits[static_cast<size_t>(id)] = kMasked;
}

bool HasPenalties(const SamplingParams& params) {
  return params.repetition_penalty != 1.0 || params.frequency_penalty != 0.0 || params.presence_penalty != 0.0;
}

// Masks the last token of each bad word if the output ends with the word's other tokens. Like vLLM, ignores the prompt.
void ApplyBadWords(const std::vector<std::vector<int32_t>>& words, std::span<const int32_t> output_token_ids,
                   std::span<float> logits) {
  for (const std::vector<int32_t>& word : words) {
    if (word.empty() || word.size() - 1 > output_token_ids.size()) continue;
    std::span<const int32_t> tail = output_token_ids.last(word.size() - 1);
    if (std::equal(tail.begin(), tail.end(), word.begin())) Mask(word.back(), logits);
  }
}

}  // namespace

void ApplyBitmask(std::span<const uint32_t> bitmask, std::span<float> logits) {
  for (size_t word = 0; word < bitmask.size() && word * 32 < logits.size(); ++word) {
    const std::span<float> part = logits.subspan(word * 32, std::min<size_t>(32, logits.size() - word * 32));
    uint32_t masked = ~bitmask[word];
    if (masked == ~0u) {
      std::ranges::fill(part, kMasked);
      continue;
    }
    for (; masked != 0; masked &= masked - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(masked));
      if (i < part.size()) part[i] = kMasked;
    }
  }
}

LogitsProcessors::LogitsProcessors(int64_t vocab_size) : counts_(static_cast<size_t>(vocab_size), 0) {
  seen_.reserve(counts_.size());
  allowed_logits_.reserve(counts_.size());
}

bool LogitsProcessors::IsNeeded(const SamplingParams& params, size_t num_output_tokens) {
  return params.allowed_token_ids || !params.bad_words_token_ids.empty() ||
         static_cast<int64_t>(num_output_tokens) < params.min_tokens || !params.logit_bias.empty() ||
         HasPenalties(params);
}

void LogitsProcessors::Apply(const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
                             std::span<const int32_t> output_token_ids, bool must_stop, std::span<float> logits) {
  if (params.allowed_token_ids) {
    allowed_logits_.clear();
    for (int32_t id : *params.allowed_token_ids) {
      allowed_logits_.push_back(InRow(id, logits) ? logits[static_cast<size_t>(id)] : kMasked);
    }
    std::fill(logits.begin(), logits.end(), kMasked);
    for (size_t i = 0; i < allowed_logits_.size(); ++i) {
      int32_t id = (*params.allowed_token_ids)[i];
      if (InRow(id, logits)) logits[static_cast<size_t>(id)] = allowed_logits_[i];
    }
  }
  ApplyBadWords(params.bad_words_token_ids, output_token_ids, logits);
  if (!must_stop && static_cast<int64_t>(output_token_ids.size()) < params.min_tokens) {
    if (params.eos_token_id) Mask(*params.eos_token_id, logits);
    for (int32_t id : params.stop_token_ids) Mask(id, logits);
  }
  for (auto [id, bias] : params.logit_bias) {
    if (InRow(id, logits)) logits[static_cast<size_t>(id)] += bias;
  }
  if (HasPenalties(params)) ApplyPenalties(params, prompt_token_ids, output_token_ids, logits);
}

void LogitsProcessors::ApplyPenalties(const SamplingParams& params, std::span<const int32_t> prompt_token_ids,
                                      std::span<const int32_t> output_token_ids, std::span<float> logits) {
  seen_.clear();
  auto count_id = [&](int32_t id, int32_t count) {
    if (!InRow(id, logits)) return;
    int32_t& entry = counts_[static_cast<size_t>(id)];
    if (entry == 0) {
      entry = 1;
      seen_.push_back(id);
    }
    entry += count;
  };
  if (params.repetition_penalty != 1.0) {
    for (int32_t id : prompt_token_ids) count_id(id, 0);
  }
  for (int32_t id : output_token_ids) count_id(id, 1);

  float repetition = static_cast<float>(params.repetition_penalty);
  float frequency = static_cast<float>(params.frequency_penalty);
  float presence = static_cast<float>(params.presence_penalty);
  for (int32_t id : seen_) {
    float& logit = logits[static_cast<size_t>(id)];
    int32_t count = counts_[static_cast<size_t>(id)] - 1;
    logit = logit > 0.0f ? logit / repetition : logit * repetition;
    logit -= frequency * static_cast<float>(count);
    if (count > 0) logit -= presence;
    counts_[static_cast<size_t>(id)] = 0;
  }
}

}  // namespace vllm
