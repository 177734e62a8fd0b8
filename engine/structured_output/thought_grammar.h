// ThoughtGrammar: the thought of a model whose markers are text or channels, as a grammar. It stands before the grammar
// of the answer, so that a token may contain the end of the marker and the beginning of the answer. BegunMessageGrammar
// is its counterpart for calls in the harmony format. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/reasoning/reasoning_format.h"

namespace vllm {

// Returns a Lark grammar of what the output may contain before the answer, for StructuredOutputsParams::before. The
// model may answer without a thought, unless the prompt has begun one.
// REQUIRES: format.kind is kText or kHarmony.
std::string ThoughtGrammar(const std::shared_ptr<const ReasoningFormat>& format,
                           std::span<const int32_t> prompt_token_ids);
// Returns a Lark grammar of what the output must contain before the channel or the recipient of its first whole
// message, or "": the rest of the message that the prompt has begun, or the beginning of the next one. REQUIRES:
// format.kind is kHarmony.
std::string BegunMessageGrammar(const std::shared_ptr<const ReasoningFormat>& format,
                                std::span<const int32_t> prompt_token_ids);

}  // namespace vllm
