// JSON Schema draft 2020-12 as rules of a grammar: the JSON texts that a schema allows. Every keyword of the validation
// and applicator vocabularies is enforced exactly or rejected by its JSON Pointer. docs/STRUCTURED_OUTPUT.md lists
// them. Pure functions; one thread per builder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/structured_output/grammar/grammar.h"

namespace vllm {

struct JsonSchemaOptions {
  // Members may come in any order. Otherwise they come in the order of `properties`, and those of other keys follow.
  bool any_order = false;
  // Between tokens of JSON may be a space, or a line break and its indent. Otherwise nothing may.
  bool flexible_whitespace = false;
};

// Adds the rules of a schema and returns the symbol of its texts. Appends to `warnings`, which may be null, what is not
// enforced: formats that the specification does not define. Throws RequestError `JSON schema: #<JSON Pointer>: <why>`
// if the schema is invalid, exceeds a limit, uses something that cannot be enforced, or allows no value;
// GrammarLimitError.
SymbolId AddJsonSchema(GrammarBuilder& builder, std::string_view schema, const JsonSchemaOptions& options,
                       std::vector<std::string>* warnings = nullptr);
// Returns the same rules as a complete grammar.
Grammar CompileJsonSchema(std::string_view schema, const JsonSchemaOptions& options = {},
                          std::vector<std::string>* warnings = nullptr);

}  // namespace vllm
