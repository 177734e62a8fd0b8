// GrammarVocabulary: the tokens that grammars can name. AddTokens and AnyTokens make their symbols. Plain values and
// functions on a builder; one thread per builder.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/structured_output/dialects/grammar_tree.h"

namespace vllm {

struct GrammarVocabulary {
  // Returns the id of the token whose whole text is `text`, or nullopt. If null, every name is a special token: this
  // checks a grammar without a model.
  std::function<std::optional<int32_t>(std::string_view text)> find;
  // Returns the bytes of a token, which are empty for a special token, or nullopt if there is no such token.
  std::function<std::optional<std::string>(int32_t token_id)> bytes;
  // The special tokens that a sequence of any tokens may contain. Leave out the tokens that end the output.
  std::vector<TokenRange> special_tokens;
};

// A token that a grammar names and the vocabulary does not have. The reader of the grammar adds where.
class UnknownTokenError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A set of tokens as grammars write it. A token that has bytes stands for its bytes, however they are split.
struct NamedTokens {
  std::vector<TokenRange> ranges;  // special tokens
  std::vector<std::string> texts;  // those with bytes

  void Append(const NamedTokens& other);
};

// Throws UnknownTokenError.
NamedTokens TokensOfName(const GrammarVocabulary& vocabulary, std::string_view name);
NamedTokens TokensOfRange(const GrammarVocabulary& vocabulary, TokenRange range);

// Adds one of the tokens.
GrammarTree::NodeId AddOneOfTokens(GrammarBuilder& builder, GrammarTree& tree, const NamedTokens& tokens);
// Adds a sequence of at least `min` tokens, of any except those `excluded`: text, and vocabulary.special_tokens.
// REQUIRES: min is 0 or 1.
GrammarTree::NodeId AddAnyTokens(GrammarBuilder& builder, GrammarTree& tree, const GrammarVocabulary& vocabulary,
                                 const NamedTokens& excluded, uint32_t min);

}  // namespace vllm
