// Results as JSON, in the shape that run, complete and batch share. A result holds nothing that depends on timing or on
// what else ran; numbers that do are added by the caller.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/request/request_output.h"
#include "tokenizer/tokenizer.h"

namespace vllm {

// {"index","text","token_ids","finish_reason","stop_reason","logprobs","cumulative_logprob"}; logprobs is null or a
// list with one object a token: {"token_id","token","logprob","rank","top":[{"token_id","token","logprob"},...]}.
nlohmann::ordered_json CompletionJson(const CompletionOutput& output, bool with_logprobs, const Tokenizer* tokenizer);

// One object a prompt token, null for the first.
nlohmann::ordered_json PromptLogprobsJson(const RequestOutput& output, const Tokenizer* tokenizer);

// One position of `logprobs` as above.
nlohmann::ordered_json LogprobJson(const Logprobs& logprobs, size_t position, const Tokenizer* tokenizer);

// Text of one token: of an id outside the vocabulary, empty.
std::string TokenText(int32_t token_id, const Tokenizer* tokenizer);

// One line; invalid UTF-8 becomes U+FFFD.
std::string DumpJson(const nlohmann::ordered_json& json);

}  // namespace vllm
