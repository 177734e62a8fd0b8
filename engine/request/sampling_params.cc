#include "engine/request/sampling_params.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "engine/config/errors.h"

namespace vllm {
namespace {

// As in vLLM, smaller positive temperatures are raised to this value, because they can produce NaN or infinity. Only
// exactly 0 means greedy sampling.
constexpr double kMinTemperature = 0.01;
constexpr float kMaxLogitBias = 100.0f;

template <typename T>
[[noreturn]] void Fail(const char* field, const std::string& why, T value) {
  std::ostringstream text;
  text << field << ": " << why << " (" << value << ")";
  throw RequestError(text.str());
}

void CheckRange(const char* field, double value, double low, double high) {
  if (value >= low && value <= high) return;
  std::ostringstream why;
  why << "outside " << low << " to " << high;
  Fail(field, why.str(), value);
}

void CheckAtLeast(const char* field, int64_t value, int64_t low) {
  if (value < low) Fail(field, "below " + std::to_string(low), value);
}

void CheckCount(const char* field, size_t count, size_t limit) {
  if (count > limit) Fail(field, "too many, limit " + std::to_string(limit), count);
}

void CheckId(const char* field, int64_t id, int64_t vocab_size) {
  if (id < 0 || id >= vocab_size) Fail(field, "token id outside 0 to " + std::to_string(vocab_size - 1), id);
}

void CheckIds(const char* field, const std::vector<int32_t>& ids, int64_t vocab_size) {
  for (int32_t id : ids) CheckId(field, id, vocab_size);
}

void CheckLogprobs(const char* field, std::optional<int64_t> value, int64_t max_logprobs) {
  if (!value || *value == -1) return;
  CheckAtLeast(field, *value, -1);
  if (max_logprobs >= 0 && *value > max_logprobs) Fail(field, "above " + std::to_string(max_logprobs), *value);
}

void CheckStopStrings(const SamplingParams& params) {
  CheckCount("stop", params.stop.size(), Limits::kMaxStopStrings);
  for (size_t i = 0; i < params.stop.size(); ++i) {
    if (params.stop[i].empty()) throw RequestError("stop: string " + std::to_string(i + 1) + " is empty");
    if (params.stop[i].size() > Limits::kMaxStopBytes) {
      Fail("stop", "longer than " + std::to_string(Limits::kMaxStopBytes) + " bytes", params.stop[i].size());
    }
  }
  if (!params.stop.empty() && !params.detokenize) Fail("stop", "needs detokenize", "false");
}

// Checks, clamps and sorts the biases. If an id is repeated, its last bias wins, as in a Python dict.
void NormalizeLogitBias(std::vector<std::pair<int32_t, float>>& logit_bias, int64_t vocab_size) {
  CheckCount("logit_bias", logit_bias.size(), Limits::kMaxLogitBias);
  for (auto& [id, bias] : logit_bias) {
    CheckId("logit_bias", id, vocab_size);
    if (std::isnan(bias)) Fail("logit_bias", "not a number", bias);
    bias = std::clamp(bias, -kMaxLogitBias, kMaxLogitBias);
  }
  std::reverse(logit_bias.begin(), logit_bias.end());
  auto by_id = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(logit_bias.begin(), logit_bias.end(), by_id);
  auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  logit_bias.erase(std::unique(logit_bias.begin(), logit_bias.end(), same), logit_bias.end());
}

void CheckBadWords(const SamplingParams& params, int64_t vocab_size) {
  CheckCount("bad_words", params.bad_words.size(), Limits::kMaxBadWords);
  for (size_t i = 0; i < params.bad_words.size(); ++i) {
    if (params.bad_words[i].empty()) throw RequestError("bad_words: string " + std::to_string(i + 1) + " is empty");
    if (params.bad_words[i].size() > Limits::kMaxBadWordBytes) {
      Fail("bad_words", "longer than " + std::to_string(Limits::kMaxBadWordBytes) + " bytes",
           params.bad_words[i].size());
    }
  }
  for (const std::vector<int32_t>& ids : params.bad_words_token_ids) {
    if (ids.empty()) Fail("bad_words", "a word has too few tokens", 0);
    CheckIds("bad_words", ids, vocab_size);
  }
}

// Checks the parameters of beam search, and sets those that do not apply to values without effect.
void NormalizeBeamSearch(SamplingParams& params) {
  if (!params.use_beam_search) {
    if (params.beam_width) Fail("beam_width", "needs use_beam_search", *params.beam_width);
    if (params.length_penalty) Fail("length_penalty", "needs use_beam_search", *params.length_penalty);
    return;
  }
  const auto exclude = [](const char* field, bool is_set) {
    if (is_set) throw RequestError(std::string(field) + ": not possible with use_beam_search");
  };
  const bool has_tools =
      params.structured_outputs && params.structured_outputs->kind == StructuredOutputsParams::Kind::kToolCalls;
  exclude(has_tools ? "tools" : "structured_outputs", params.structured_outputs.has_value());
  exclude("thinking_token_budget", params.thinking_token_budget.value_or(-1) != -1);
  exclude("stop", !params.stop.empty());
  exclude("stop_token_ids", !params.stop_token_ids.empty());
  exclude("min_tokens", params.min_tokens != 0);
  exclude("logprobs", params.logprobs.has_value());
  exclude("prompt_logprobs", params.prompt_logprobs.has_value());
  exclude("logit_bias", !params.logit_bias.empty());
  exclude("allowed_token_ids", params.allowed_token_ids.has_value());
  exclude("bad_words", !params.bad_words.empty());

  CheckAtLeast("n", params.n, 1);
  if (!params.beam_width) params.beam_width = params.n > 1 ? params.n : SamplingParams::kDefaultBeamWidth;
  CheckRange("beam_width", static_cast<double>(*params.beam_width), 1, static_cast<double>(Limits::kMaxBeamWidth));
  if (params.n != 1 && params.n != *params.beam_width) {
    Fail("n", "with use_beam_search, must be beam_width " + std::to_string(*params.beam_width), params.n);
  }
  if (!params.length_penalty) params.length_penalty = 1.0;
  CheckRange("length_penalty", *params.length_penalty, -Limits::kMaxLengthPenalty, Limits::kMaxLengthPenalty);
  params.temperature = 0.0;
  params.presence_penalty = 0.0;
  params.frequency_penalty = 0.0;
  params.repetition_penalty = 1.0;
}

}  // namespace

void SamplingParams::Normalize(int64_t vocab_size, int64_t max_model_len, int64_t max_logprobs) {
  CheckAtLeast("n", n, 1);
  if (n > Limits::kMaxN) Fail("n", "above " + std::to_string(Limits::kMaxN), n);
  CheckRange("presence_penalty", presence_penalty, -2.0, 2.0);
  CheckRange("frequency_penalty", frequency_penalty, -2.0, 2.0);
  if (!(repetition_penalty > 0.0 && repetition_penalty <= std::numeric_limits<double>::max())) {
    Fail("repetition_penalty", "must be positive and finite", repetition_penalty);
  }
  CheckRange("temperature", temperature, 0.0, 2.0);
  if (temperature > 0.0 && temperature < kMinTemperature) temperature = kMinTemperature;
  if (!(top_p > 0.0 && top_p <= 1.0)) Fail("top_p", "outside (0, 1]", top_p);
  CheckAtLeast("top_k", top_k, -1);
  if (top_k == -1) top_k = 0;
  CheckRange("min_p", min_p, 0.0, 1.0);

  if (max_tokens) CheckAtLeast("max_tokens", *max_tokens, 1);
  CheckAtLeast("min_tokens", min_tokens, 0);
  int64_t limit = max_tokens.value_or(max_model_len);
  if (min_tokens > limit) {
    Fail("min_tokens", (max_tokens ? "above max_tokens " : "above max_model_len ") + std::to_string(limit), min_tokens);
  }
  if (thinking_token_budget) CheckAtLeast("thinking_token_budget", *thinking_token_budget, -1);
  if (thinking_token_budget == -1) thinking_token_budget.reset();
  CheckLogprobs("logprobs", logprobs, max_logprobs);
  CheckLogprobs("prompt_logprobs", prompt_logprobs, max_logprobs);

  CheckStopStrings(*this);
  CheckCount("stop_token_ids", stop_token_ids.size(), Limits::kMaxStopTokenIds);
  CheckIds("stop_token_ids", stop_token_ids, vocab_size);
  NormalizeLogitBias(logit_bias, vocab_size);
  if (allowed_token_ids) {
    if (allowed_token_ids->empty()) Fail("allowed_token_ids", "empty", 0);
    CheckCount("allowed_token_ids", allowed_token_ids->size(), static_cast<size_t>(std::max<int64_t>(vocab_size, 0)));
    CheckIds("allowed_token_ids", *allowed_token_ids, vocab_size);
  }
  CheckBadWords(*this, vocab_size);
  if (eos_token_id) CheckId("eos_token_id", *eos_token_id, vocab_size);

  if (seed == std::numeric_limits<uint64_t>::max()) seed.reset();
  if (best_of) {
    if (use_beam_search) Fail("best_of", "not possible with use_beam_search", *best_of);
    CheckAtLeast("best_of", *best_of, n);
    if (*best_of > Limits::kMaxN) Fail("best_of", "above " + std::to_string(Limits::kMaxN), *best_of);
    if (greedy() && *best_of > 1) Fail("best_of", "with temperature 0, must be 1", *best_of);
  }
  NormalizeBeamSearch(*this);
  if (greedy()) {
    if (n > 1 && !use_beam_search) Fail("n", "with temperature 0, must be 1", n);
    temperature = 0.0;
    top_p = 1.0;
    top_k = 0;
    min_p = 0.0;
  }
  if (use_beam_search) n = *beam_width;
}

}  // namespace vllm
