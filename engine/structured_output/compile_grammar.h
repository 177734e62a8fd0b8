// Compiles the constraint of a request to a Grammar. Pure function; any thread.
#pragma once

#include <string>
#include <vector>

#include "engine/request/structured_outputs_params.h"
#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/structured_output/grammar/grammar.h"

namespace vllm {

// Without functions in `vocabulary`, the constraint is only checked: the tokens that it names are not looked up.
// Appends warnings for the user to `warnings`, which may be null. Throws RequestError `<kind>: <why>` if the constraint
// is invalid, not supported, exceeds a limit or allows no text.
Grammar CompileGrammar(const StructuredOutputsParams& params, const GrammarVocabulary& vocabulary,
                       std::vector<std::string>* warnings = nullptr);

}  // namespace vllm
