// SamplingParams: how one request samples and when it stops. The names are vLLM's, and so are most defaults and ranges.
// A plain value; immutable once the request is in the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/request/structured_outputs_params.h"

namespace vllm {

enum class RequestOutputKind : uint8_t { kCumulative, kDelta, kFinalOnly };

// Upper limits for the fields of one request.
struct Limits {
  static constexpr int64_t kMaxN = 128;
  static constexpr int64_t kMaxBeamWidth = 64;
  static constexpr double kMaxLengthPenalty = 10.0;  // the least is its negative
  static constexpr size_t kMaxStopStrings = 16;
  static constexpr size_t kMaxStopBytes = 256;
  static constexpr size_t kMaxStopTokenIds = 128;
  static constexpr size_t kMaxLogitBias = 1024;
  static constexpr size_t kMaxBadWords = 1024;
  static constexpr size_t kMaxBadWordBytes = 256;
};

struct SamplingParams {
  int64_t n = 1;
  // Samples this many sequences and returns the n with the highest cumulative logprobs, the best first, once all are
  // finished. None: n.
  std::optional<int64_t> best_of;
  double presence_penalty = 0.0;
  double frequency_penalty = 0.0;
  double repetition_penalty = 1.0;
  double temperature = 1.0;
  double top_p = 1.0;
  int64_t top_k = 0;  // 0 or -1: off
  double min_p = 0.0;
  std::optional<uint64_t> seed;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  std::optional<int64_t> max_tokens;  // none: as many tokens as fit into max_model_len
  int64_t min_tokens = 0;
  std::optional<int64_t> logprobs;         // number of most probable tokens to report; -1: the whole vocabulary
  std::optional<int64_t> prompt_logprobs;  // same range as logprobs; disables reading the prefix cache
  bool detokenize = true;
  bool skip_special_tokens = true;
  bool include_stop_str_in_output = false;
  RequestOutputKind output_kind = RequestOutputKind::kCumulative;
  std::vector<std::pair<int32_t, float>> logit_bias;  // (token id, bias); biases are clamped to -100..100
  std::optional<std::vector<int32_t>> allowed_token_ids;
  std::vector<std::string> bad_words;
  bool skip_reading_prefix_cache = false;
  // After this many tokens of thinking, the end marker of the model's ReasoningFormat follows. Tokens of the prompt
  // after the start marker count. -1: none.
  std::optional<int64_t> thinking_token_budget;

  std::optional<StructuredOutputsParams> structured_outputs;

  // Beam search, see engine/sched/beam_search.h. The request returns its beam_width best sequences, once all are
  // finished. Its logprobs are those of the model's own distribution, so the parameters that shape it do not apply.
  bool use_beam_search = false;
  std::optional<int64_t> beam_width;     // none: n, or kDefaultBeamWidth if n is 1
  std::optional<double> length_penalty;  // none: 1; positive values favor long sequences
  static constexpr int64_t kDefaultBeamWidth = 4;

  // Set by the InputProcessor, never by a user.
  std::vector<std::vector<int32_t>> bad_words_token_ids;
  std::optional<int32_t> eos_token_id;

  bool greedy() const { return temperature == 0.0; }

  // Checks the fields and converts them to canonical form: a temperature between 0 and 0.01 becomes 0.01, a top_k of -1
  // becomes 0, a seed of 2^64 - 1 (-1 as signed) becomes none, logit_bias is clamped, sorted by token id and
  // deduplicated, and greedy sampling sets top_p 1, top_k 0 and min_p 0. Beam search sets beam_width, length_penalty,
  // n = beam_width and temperature 0, and turns penalties off. Throws RequestError `<field>: <why>`, in most cases with
  // ` (<value>)` at the end.
  void Normalize(int64_t vocab_size, int64_t max_model_len, int64_t max_logprobs);
};

}  // namespace vllm
