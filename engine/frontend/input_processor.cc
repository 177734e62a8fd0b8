#include "engine/frontend/input_processor.h"

#include <algorithm>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/config/hash.h"
#include "engine/frontend/output_memory.h"
#include "engine/lora/lora_adapter.h"
#include "engine/reasoning/reasoning_format.h"
#include "engine/structured_output/compiler/grammar_compiler.h"
#include "engine/structured_output/thought_grammar.h"
#include "engine/structured_output/tool_calls/tool_call_constraint.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {

uint64_t DeriveSeed(uint64_t engine_seed, std::string_view request_id) {
  // FNV-1a over the id, then SplitMix64's finalizer, so that similar ids and seeds give unrelated results. Changing
  // this function would change the sampled tokens of requests without a seed.
  uint64_t hash = 0xCBF29CE484222325ull ^ engine_seed * kSplitMixGamma;
  for (const char c : request_id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return MixBits(hash);
}

InputProcessor::InputProcessor(const VllmConfig& config, int64_t max_model_len, const tokenizer::Tokenizer* tokenizer,
                               int64_t max_output_memory)
    : vocab_size_(config.model.vocab_size),
      type_vocab_size_(config.model.type_vocab_size),
      hidden_size_(config.model.hidden_size),
      pooler_(config.model.pooler),
      max_model_len_(max_model_len),
      max_kv_tokens_(max_model_len),
      max_logprobs_(config.max_logprobs),
      max_output_memory_(max_output_memory),
      seed_(config.seed),
      eos_token_ids_(config.model.eos_token_ids),
      lora_(config.lora),
      tokenizer_(tokenizer),
      enable_in_reasoning_(config.structured_outputs.enable_in_reasoning),
      grammar_compiler_(
          std::make_unique<GrammarCompiler>(tokenizer, config.model.vocab_size, config.grammar_cache_bytes)) {
  // Drop EOS ids outside the vocabulary: the model cannot produce them, and they would be out of the sampler's range.
  std::erase_if(eos_token_ids_, [this](int32_t id) { return id < 0 || id >= vocab_size_; });
}

InputProcessor::~InputProcessor() = default;

void InputProcessor::SetLoRA(const std::optional<std::string>& name, ProcessedInput& input) const {
  const std::string& chosen = name ? *name : lora_.default_lora;
  if (chosen.empty()) return;
  const int32_t slot = SlotOf(lora_.adapters, chosen);
  if (slot >= 0) {
    input.lora_slot = slot;
    input.lora_digest = lora_.adapters[static_cast<size_t>(slot)]->digest;
    return;
  }
  throw RequestError("lora: no adapter has this name (" + Escape(chosen) + "; loaded: " + AdapterNames(lora_.adapters) +
                     ")");
}

std::vector<int32_t> InputProcessor::TokenIds(const Prompt& prompt) const {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) return *ids;
  const TextPrompt& text = std::get<TextPrompt>(prompt);
  if (tokenizer_ == nullptr) throw RequestError("prompt: text needs a tokenizer (none is loaded)");
  return tokenizer_->Encode(text.text, text.add_special_tokens);
}

void InputProcessor::CheckIds(const char* field, std::span<const int32_t> token_ids) const {
  for (const int32_t id : token_ids) {
    if (id < 0 || id >= vocab_size_) {
      throw RequestError(std::string(field) + ": token id outside the vocabulary (" + std::to_string(vocab_size_) +
                         " tokens; id " + std::to_string(id) + ")");
    }
  }
}

void InputProcessor::CheckPrior(std::span<const int32_t> prior_output_token_ids, int64_t num_prompt_tokens,
                                const SamplingParams& params) const {
  if (prior_output_token_ids.empty()) return;
  CheckIds("prior_output_token_ids", prior_output_token_ids);
  if (params.use_beam_search) throw RequestError("prior_output_token_ids: not possible with use_beam_search");
  if (params.n != 1) throw RequestError("prior_output_token_ids: n must be 1 (" + std::to_string(params.n) + ")");
  const auto num_prior = static_cast<int64_t>(prior_output_token_ids.size());
  const int64_t limit = std::min(*params.max_tokens, max_model_len_ - num_prompt_tokens);
  if (num_prior >= limit) {
    throw RequestError("prior_output_token_ids: must be fewer than " + std::to_string(limit) +
                       ", the most output tokens that the request may have (" + std::to_string(num_prior) + ")");
  }
}

void InputProcessor::CheckPrompt(const std::vector<int32_t>& prompt_token_ids) const {
  if (prompt_token_ids.empty()) throw RequestError("prompt: must have at least one token");
  CheckIds("prompt_token_ids", prompt_token_ids);
  // Leave room for one token of the answer.
  const int64_t limit = max_model_len_ - 1;
  const auto num_tokens = static_cast<int64_t>(prompt_token_ids.size());
  if (num_tokens > limit) {
    throw RequestError("prompt is " + std::to_string(num_tokens) + " tokens, limit " + std::to_string(limit));
  }
}

void InputProcessor::CheckStopUtf8(const SamplingParams& params) const {
  if (params.stop.empty()) return;
  if (tokenizer_ == nullptr) throw RequestError("stop: stop strings need a tokenizer (none is loaded)");
  for (size_t i = 0; i < params.stop.size(); ++i) {
    // Output text is always valid UTF-8, so a stop string that is not could never match.
    if (!tokenizer::IsValidUtf8(params.stop[i]))
      throw RequestError("stop: string " + std::to_string(i + 1) + " is not valid UTF-8");
  }
}

void InputProcessor::SetEos(SamplingParams& params) const {
  if (!eos_token_ids_.empty()) params.eos_token_id = eos_token_ids_.front();
}

void InputProcessor::AddOtherEos(SamplingParams& params) const {
  if (eos_token_ids_.empty() || params.ignore_eos) return;
  for (const int32_t id : std::span(eos_token_ids_).subspan(1)) {
    auto& stop_ids = params.stop_token_ids;
    if (std::find(stop_ids.begin(), stop_ids.end(), id) == stop_ids.end()) stop_ids.push_back(id);
  }
}

void InputProcessor::EncodeBadWords(SamplingParams& params) const {
  params.bad_words_token_ids.clear();
  if (params.bad_words.empty()) return;
  if (tokenizer_ == nullptr) throw RequestError("bad_words: words need a tokenizer (none is loaded)");
  if (params.bad_words.size() > Limits::kMaxBadWords) return;  // Normalize rejects them; do not encode them first
  for (const std::string& text : params.bad_words) {
    const size_t start = text.find_first_not_of(" \t\n\r\f\v");
    const std::string word = start == std::string::npos ? "" : text.substr(start);
    std::vector<int32_t> ids = tokenizer_->Encode(word, /*add_special_tokens=*/false);
    std::vector<int32_t> spaced = tokenizer_->Encode(" " + word, /*add_special_tokens=*/false);
    // As in vLLM, the form with a leading space is added only if it has as many tokens as the form without and a
    // different first token. If not, the space is usually a separate token, and the word's tokens after it are already
    // banned.
    const bool keep_spaced = !ids.empty() && spaced.size() == ids.size() && spaced.front() != ids.front();
    params.bad_words_token_ids.push_back(std::move(ids));
    if (keep_spaced) params.bad_words_token_ids.push_back(std::move(spaced));
  }
}

void InputProcessor::FitLengths(int64_t num_prompt_tokens, SamplingParams& params) const {
  const int64_t remaining = max_model_len_ - num_prompt_tokens;
  params.max_tokens = std::min(params.max_tokens.value_or(remaining), remaining);
  params.min_tokens = std::min(params.min_tokens, *params.max_tokens);
  if (const int64_t num_tokens = num_prompt_tokens + *params.max_tokens; num_tokens > max_kv_tokens_) {
    throw ResourceError("a request may need " + std::to_string(num_tokens) +
                        " tokens of context, and the KV cache holds " + std::to_string(max_kv_tokens_) +
                        "; --kv-cache-memory sets its size");
  }
}

void InputProcessor::SetGrammar(ProcessedInput& input) const {
  SamplingParams& params = input.params;
  // It would continue after the end of the text that the grammar allows.
  if (params.ignore_eos) throw RequestError("structured_outputs: not possible with ignore_eos");
  // A call follows the thought.
  const bool is_in_reasoning =
      enable_in_reasoning_ && params.structured_outputs->kind != StructuredOutputsParams::Kind::kToolCalls;
  if (is_in_reasoning && params.thinking_token_budget) {
    throw RequestError("thinking_token_budget: not possible where structured_outputs constrains the thinking");
  }
  if (reasoning_format_ != nullptr && !is_in_reasoning) {
    if (reasoning_format_->kind == ReasoningFormat::Kind::kTokens) {
      input.reasoning_format = reasoning_format_;
    } else if (ConstrainsHarmony(*params.structured_outputs)) {
      params.structured_outputs->before = BegunMessageGrammar(reasoning_format_, input.prompt_token_ids);
    } else {
      params.structured_outputs->before = ThoughtGrammar(reasoning_format_, input.prompt_token_ids);
    }
  }
  input.grammar = grammar_compiler_->Compile(*params.structured_outputs);
}

void InputProcessor::CheckGrammar(const ProcessedInput& input) const {
  if (input.grammar == nullptr) return;
  grammar_compiler_->Wait(*input.grammar);
  if (input.grammar->grammar() == nullptr) throw RequestError(input.grammar->error());
}

ProcessedInput InputProcessor::Process(std::string_view request_id, const Prompt& prompt,
                                       const SamplingParams& user_params,
                                       std::span<const int32_t> prior_output_token_ids) const {
  ProcessedInput input;
  input.params = user_params;
  input.external_req_id = request_id;
  SamplingParams& params = input.params;
  // Derive these values first, so that they are checked together with the caller's values.
  input.prompt_token_ids = TokenIds(prompt);
  SetEos(params);
  EncodeBadWords(params);

  CheckPrompt(input.prompt_token_ids);
  CheckStopUtf8(params);
  params.Normalize(vocab_size_, max_model_len_, max_logprobs_);

  if (params.thinking_token_budget) {
    if (reasoning_format_ == nullptr) {
      throw RequestError("thinking_token_budget: this model has no known marker that ends its thinking (" +
                         std::to_string(*params.thinking_token_budget) + "); --reasoning-parser names one");
    }
    CheckIds("the end marker of thinking", reasoning_format_->end_ids);
    input.reasoning_format = reasoning_format_;
  }

  // The values added from here on are valid by construction and do not count against the request's limits.
  input.num_returned = params.n;
  if (params.best_of) {
    params.n = *params.best_of;
    if (!params.logprobs) params.logprobs = 0;
  }
  AddOtherEos(params);
  if (!params.seed) params.seed = DeriveSeed(seed_, request_id);
  if (tokenizer_ == nullptr) params.detokenize = false;
  const auto num_prompt_tokens = static_cast<int64_t>(input.prompt_token_ids.size());
  FitLengths(num_prompt_tokens, params);
  CheckPrior(prior_output_token_ids, num_prompt_tokens, params);
  input.prior_output_token_ids.assign(prior_output_token_ids.begin(), prior_output_token_ids.end());
  CheckOutputMemory(params, num_prompt_tokens, vocab_size_, max_output_memory_);
  if (params.structured_outputs) SetGrammar(input);
  return input;
}

ProcessedInput InputProcessor::ProcessPooling(std::string_view request_id, const PoolingPrompt& prompt,
                                              const PoolingParams& params) const {
  ProcessedInput input;
  input.external_req_id = request_id;
  if (params.task == PoolingTask::kScore && !pooler_.classifier) {
    throw RequestError("task: the model has no classifier, so it gives no scores");
  }
  if (params.task == PoolingTask::kEmbed && params.dimensions != 0) {
    const std::string problem = pooler_.DimensionsProblem(params.dimensions, hidden_size_);
    if (!problem.empty()) throw RequestError("dimensions: " + problem);
  }
  if (prompt.token_ids.empty()) throw RequestError("prompt: must have at least one token");
  CheckIds("prompt_token_ids", prompt.token_ids);
  const auto num_tokens = static_cast<int64_t>(prompt.token_ids.size());
  if (num_tokens > max_model_len_) {
    throw RequestError("prompt is " + std::to_string(num_tokens) + " tokens, limit " + std::to_string(max_model_len_));
  }
  if (!prompt.token_type_ids.empty() && prompt.token_type_ids.size() != prompt.token_ids.size()) {
    throw RequestError("token_type_ids: not one for each token of the prompt");
  }
  const int64_t num_types = std::max<int64_t>(1, type_vocab_size_);
  for (const int32_t type : prompt.token_type_ids) {
    if (type < 0 || type >= num_types) {
      throw RequestError("token_type_ids: outside 0 to " + std::to_string(num_types - 1) + " (" + std::to_string(type) +
                         ")");
    }
  }
  input.prompt_token_ids = prompt.token_ids;
  input.token_type_ids = prompt.token_type_ids;
  input.pooling_params = params;
  input.pooling_params->needs_all_tokens = pooler_.NeedsAllTokens();
  input.params.max_tokens = 1;
  input.params.seed = 0;
  input.params.detokenize = false;
  input.params.output_kind = RequestOutputKind::kFinalOnly;
  return input;
}

}  // namespace vllm
