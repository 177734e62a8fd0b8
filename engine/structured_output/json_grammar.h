// JsonGrammar: rules for the parts of JSON texts (RFC 8259), in a ByteGrammarBuilder. The texts have no whitespace
// outside strings. Rules that the schema needs more than once are made once. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/structured_output/byte_grammar.h"

namespace vllm {

class JsonGrammar {
 public:
  explicit JsonGrammar(ByteGrammarBuilder& builder) : builder_(builder) {}

  // Each returns a rule. Any JSON value:
  ByteGrammarRule Value();
  // A number without fraction and exponent:
  ByteGrammarRule Integer();
  ByteGrammarRule Number();
  // A string with quotation marks, of any length:
  ByteGrammarRule String();
  // One code point of a string, which may be escaped. Surrogates are escaped in pairs only.
  ByteGrammarRule Character();

  // Adds a string of min_length to max_length code points between `from` and `to`.
  void AddString(ByteGrammarState from, int64_t min_length, std::optional<int64_t> max_length, ByteGrammarState to);
  // Adds a member of an object: a key that is none of `other_than`, and any value of `rule`. A key that begins like one
  // of `other_than` is not written with \u escapes until it differs, so that each key has one spelling there.
  void AddMember(ByteGrammarState from, std::span<const std::string> other_than, ByteGrammarRule rule,
                 ByteGrammarState to);

 private:
  // The code points of a string that need no escape, in ascending order without those in `except`.
  void AddPlainCharacters(ByteGrammarState from, std::u32string_view except, ByteGrammarState to);
  // A backslash was read.
  void AddEscape(ByteGrammarState from, ByteGrammarState to);
  // The characters of a string up to its end quotation mark, which leads to `to`.
  void AddStringRest(ByteGrammarState from, ByteGrammarState to);

  ByteGrammarBuilder& builder_;
  std::optional<ByteGrammarRule> value_, integer_, number_, string_, character_;
};

// Returns `text` as a JSON string, escaping only quotation marks, backslashes and control characters.
// REQUIRES: text is valid UTF-8.
std::string QuoteJson(std::string_view text);

}  // namespace vllm
