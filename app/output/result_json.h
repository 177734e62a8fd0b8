// Converts results to JSON, in the form that run, complete and batch share. Only RunJson contains values that depend on
// timing or on other requests. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "app/output/request_stats.h"
#include "engine/reasoning/reasoning_splitter.h"
#include "engine/request/request_output.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

// Returns {"index","text","token_ids","finish_reason","stop_reason","logprobs","cumulative_logprob"}, and "score" if
// the outputs are ranked by one. logprobs is null or a list with one object per token:
// {"token_id","token","logprob","rank","top":[{"token_id","token","logprob"},...]}.
// If `parts` is not null, text and token_ids are those of the answer, and after them follow "reasoning", which is null
// without a thought, and "reasoning_token_ids". logprobs has the tokens of both.
nlohmann::ordered_json CompletionJson(const CompletionOutput& output, bool with_logprobs,
                                      const tokenizer::Tokenizer* tokenizer, const ReasoningParts* parts = nullptr);

// Returns the object that run and complete print with --json: {"id","model","prompt_tokens","cached_tokens",
// "draft_tokens","accepted_draft_tokens","outputs","sampling","timings"}. `outputs` is a list of CompletionJson.
nlohmann::ordered_json RunJson(const std::string& request_id, const std::string& model, const RequestStats& stats,
                               nlohmann::ordered_json outputs, nlohmann::ordered_json sampling);

// Adds "prompt_tokens" and the other counts of tokens to the object.
void AddTokenCounts(const RequestStats& stats, nlohmann::ordered_json& json);

// Returns a list with one entry per prompt token: null for the first token, which has no logprob, and an object for
// each other token.
nlohmann::ordered_json PromptLogprobsJson(const RequestOutput& output, const tokenizer::Tokenizer* tokenizer);

// Returns the object of one position of `logprobs`, in the form above.
nlohmann::ordered_json LogprobJson(const Logprobs& logprobs, size_t position, const tokenizer::Tokenizer* tokenizer);

// Returns the text of one token. The text is empty if the id is outside the vocabulary or `tokenizer` is null.
std::string TokenText(int32_t token_id, const tokenizer::Tokenizer* tokenizer);

}  // namespace vllm::app
