// Structural tags: text with parts that follow a schema or grammar, as vLLM and xgrammar describe it in JSON. One
// thread per builder.
//
//   {"type": "structural_tag", "format": FORMAT}
//   {"type": "structural_tag", "structures": [{"begin": TEXT, "schema": S, "end": TEXT}...], "triggers": [TEXT...]}
//
// Each FORMAT is an object with a `type`: const_string, json_schema, grammar, regex, any_text, sequence, or, optional,
// plus, star, repeat, tag, triggered_tags, tags_with_separator, dispatch, token, exclude_token (in plus and star only),
// any_tokens, token_triggered_tags or token_dispatch. Free text ends at the first trigger, and inside a tag at the
// first end of the tag.
#pragma once

#include <string_view>

#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/structured_output/grammar/grammar.h"
#include "engine/structured_output/json_schema/schema_compiler.h"

namespace vllm {

// Adds the rules and returns the symbol of the texts. Throws RequestError `structural tag: <path>: <why>` if something
// is invalid or not supported; GrammarLimitError.
SymbolId AddStructuralTag(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary,
                          const JsonSchemaOptions& options);

}  // namespace vllm
