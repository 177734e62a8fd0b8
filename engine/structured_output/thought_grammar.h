// ThoughtGrammar: the thought of a model whose markers are text or channels, as a grammar. It stands before the grammar
// of the answer, so that a token may contain the end of the marker and the beginning of the answer. Pure function; any
// thread.
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

}  // namespace vllm
