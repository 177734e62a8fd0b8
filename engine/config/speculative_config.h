// SpeculativeConfig: which draft tokens a step may verify besides the token that each request has to compute. A draft
// is accepted only if the sampler draws the same token, so drafts change the speed and no token. Plain values; any
// thread may read its copy. The names are those of vLLM's --speculative-config.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace vllm {

enum class SpeculativeMethod : uint8_t {
  kOff,
  kNgram,       // the tokens that followed the last n tokens earlier in the same request
  kSuffix,      // the tokens that followed the longest match in the request and in the outputs of all requests
  kGrammar,     // the tokens that the grammar of a structured output leaves no choice about
  kDraftModel,  // the tokens that a small model finds most probable
};
inline constexpr int kNumSpeculativeMethods = 5;

// Returns the name of the method in --speculative-config and in statistics.
constexpr std::string_view ToString(SpeculativeMethod method) {
  switch (method) {
    case SpeculativeMethod::kOff:
      return "off";
    case SpeculativeMethod::kNgram:
      return "ngram";
    case SpeculativeMethod::kSuffix:
      return "suffix";
    case SpeculativeMethod::kGrammar:
      return "grammar";
    case SpeculativeMethod::kDraftModel:
      return "draft_model";
  }
  return "";
}

// The upper limit for num_speculative_tokens; vLLM's MAX_SPEC_LEN.
inline constexpr int64_t kMaxSpeculativeTokens = 128;

struct SpeculativeConfig {
  SpeculativeMethod method = SpeculativeMethod::kOff;
  // The largest number of drafts of a request in a step. 0: see MaxDrafts.
  int64_t num_speculative_tokens = 0;
  // Drafts fewer tokens, or none, where the measured time of steps says that more would not pay. Without it, every
  // draft that the method proposes is verified.
  bool adaptive = true;

  // kNgram: the lengths of the matches.
  int64_t prompt_lookup_min = 5;
  int64_t prompt_lookup_max = 5;

  // kSuffix
  int64_t suffix_decoding_max_tree_depth = 24;  // tokens of a match that are compared
  // The requests whose outputs are searched, those that started last; 0: none.
  int64_t suffix_decoding_max_cached_requests = 10000;
  double suffix_decoding_max_spec_factor = 1.0;  // drafts per token of the match
  double suffix_decoding_min_token_prob = 0.1;   // the share of a draft among what followed the matches

  // kDraftModel: its name, as for --model, and its number of ranks; 0: that of the other model.
  std::string model;
  int64_t draft_tensor_parallel_size = 0;

  bool enabled() const { return method != SpeculativeMethod::kOff; }
  // Returns the largest number of drafts of a request in a step.
  int64_t MaxDrafts() const {
    if (!enabled()) return 0;
    if (num_speculative_tokens > 0) return num_speculative_tokens;
    if (method == SpeculativeMethod::kDraftModel) return kDefaultModelDrafts;
    if (method != SpeculativeMethod::kSuffix) return kDefaultDrafts;
    return std::min(suffix_decoding_max_tree_depth, kMaxSpeculativeTokens);
  }

 private:
  static constexpr int64_t kDefaultDrafts = 8;
  static constexpr int64_t kDefaultModelDrafts = 4;
};

}  // namespace vllm
