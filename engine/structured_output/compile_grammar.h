// Compiles the constraint of a request to a Grammar. Pure function; any thread.
#pragma once

#include <string>
#include <vector>

#include "engine/request/structured_outputs_params.h"
#include "engine/structured_output/dialects/gbnf.h"
#include "engine/structured_output/grammar/grammar.h"

namespace vllm {

// The most texts of a choice, and the bytes of them all.
inline constexpr size_t kMaxChoices = 50'000;
inline constexpr size_t kMaxChoiceBytes = size_t{4} << 20;

// `find_token` may be empty, see ParseGbnf. Appends warnings for the user to `warnings`, which may be null. Throws
// RequestError `<kind>: <why>` if the constraint is invalid, not supported, exceeds a limit or allows no text.
Grammar CompileGrammar(const StructuredOutputsParams& params, const FindSpecialToken& find_token,
                       std::vector<std::string>* warnings = nullptr);

}  // namespace vllm
