// SyntaxText: the literal texts of a ToolCallFormat as parts of a grammar. Used while a grammar is made; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/structured_output/dialects/grammar_tree.h"
#include "engine/structured_output/dialects/grammar_vocabulary.h"
#include "engine/tool_calls/syntax/tool_call_format.h"

namespace vllm {

class SyntaxText {
 public:
  // All are borrowed.
  SyntaxText(GrammarBuilder& builder, const GrammarVocabulary& vocabulary, const ToolCallFormat& format);

  // Adds a text. Parts that are special tokens of the vocabulary must be written as tokens. "%INDEX%" is any number.
  GrammarTree::NodeId Add(GrammarTree& tree, std::string_view text);
  // Returns the bytes of a text without special tokens. If calls are JSON objects, other spaces may be between the
  // tokens of JSON.
  RegexId Bytes(std::string_view text);
  // Returns the texts that an expression of RE2 matches as a whole.
  RegexId Pattern(std::string_view pattern);

 private:
  // Returns the id of the special token whose text is the longest beginning of `text`, and its length.
  std::optional<std::pair<int32_t, size_t>> SpecialTokenAt(std::string_view text) const;
  GrammarTree::NodeId AddBytes(GrammarTree& tree, std::string_view text);

  GrammarBuilder& builder_;
  const GrammarVocabulary& vocabulary_;
  const bool is_json_;
  RegexId space_;
};

}  // namespace vllm
