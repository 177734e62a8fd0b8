// Asks a compiled JSON Schema about whole texts, byte by byte. For tests; one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/structured_output/json_schema/schema_compiler.h"
#include "engine/structured_output/matcher/grammar_automaton.h"

namespace vllm::testing_support {

class GrammarText {
 public:
  // Throws RequestError like CompileJsonSchema.
  explicit GrammarText(std::string_view schema, const JsonSchemaOptions& options = {})
      : automaton_(CompileJsonSchema(schema, options),
                   std::make_shared<const VocabTrie>(std::vector<std::string>(), 0)) {}

  // Returns whether the schema allows exactly this text.
  bool Accepts(std::string_view text) {
    GrammarAutomaton::Position position;
    for (const char c : text) {
      if (!automaton_.Advance(position, std::string_view(&c, 1))) return false;
    }
    return automaton_.MayEnd(position);
  }

 private:
  GrammarAutomaton automaton_;
};

}  // namespace vllm::testing_support
