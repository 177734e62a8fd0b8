// The outputs that a ToolCallConstraint allows, as rules of a grammar: calls in the syntax of the model, with arguments
// that the schema of the tool allows. ToolCallParser reads every such output without an error. One thread per builder.
//
// Texts of the syntax that are special tokens of the vocabulary must be written as these tokens. Text outside of calls
// does not contain the triggers of the format.
#pragma once

#include <string>
#include <vector>

#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/tool_calls/tool_call_constraint.h"

namespace vllm {

// Adds the rules and returns the symbol of the outputs. If a schema cannot be enforced and neither the constraint must
// have a call nor the tool is strict, the tool's arguments may be any JSON object, and `warnings`, which may be null,
// gets a warning. Otherwise throws RequestError `tool <name>: <why>`; GrammarLimitError.
SymbolId AddToolCalls(GrammarBuilder& builder, const ToolCallConstraint& constraint,
                      const GrammarVocabulary& vocabulary, const JsonSchemaOptions& options,
                      std::vector<std::string>* warnings);

}  // namespace vllm
