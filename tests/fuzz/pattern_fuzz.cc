// Fuzzes the reader of patterns. The input is a pattern, a zero byte, and a text. Both syntaxes must give an expression
// or a named error. In ECMA's, the expression for JSON strings must match a spelling of the text exactly if the
// expression for UTF-8 matches the text. In RE2's, the library must agree.
#include <cctype>
#include <string>

#include <re2/re2.h>

#include "engine/config/errors.h"
#include "engine/structured_output/patterns/pattern.h"
#include "tests/fuzz/fuzz_target.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

constexpr size_t kMaxTextBytes = 32;

enum class Result { kMatch, kNoMatch, kInvalid, kTooLarge };

Result MatchText(std::string_view pattern, std::string_view text, PatternSyntax syntax, PatternMatch match,
                 TextSpelling spelling) {
  try {
    RegexStore store;
    const RegexId id = ParsePattern(store, pattern, syntax, match, spelling);
    const bool matches = store.Matches(id, text);
    Require(!matches || !store.IsNothing(id), "a pattern that matches a text is not empty");
    return matches ? Result::kMatch : Result::kNoMatch;
  } catch (const RequestError& error) {
    Require(error.what()[0] != '\0', "an error has a text");
    return Result::kInvalid;
  } catch (const GrammarLimitError&) {
    return Result::kTooLarge;
  }
}

bool IsKnown(Result result) { return result == Result::kMatch || result == Result::kNoMatch; }

// Escapes every second code point that may be escaped, and those that must be.
std::string Spell(std::string_view text) {
  std::string out;
  const auto append_unit = [&](char32_t unit) {
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[unit >> shift & 15];
  };
  bool escapes = false;
  for (size_t i = 0; i < text.size(); escapes = !escapes) {
    const tokenizer::CodePoint c = tokenizer::CodePointAt(text, i);
    const bool is_never_escaped = c.value < 0x80 && (std::isalnum(static_cast<int>(c.value)) != 0 || c.value == ' ');
    if (is_never_escaped || (!escapes && c.value >= 0x20 && c.value != '"' && c.value != '\\')) {
      out += text.substr(i, c.length);
    } else if (c.value > 0xFFFF) {
      append_unit(0xD800 + ((c.value - 0x10000) >> 10));
      append_unit(0xDC00 + ((c.value - 0x10000) & 0x3FF));
    } else {
      append_unit(c.value);
    }
    i += c.length;
  }
  return out;
}

// RE2 20220601 has other Unicode tables, a wrong result where the flag i is set in the middle, and its own reading of
// the flags that it knows.
bool IsComparable(std::string_view pattern) {
  for (size_t i = pattern.find("(?"); i != pattern.npos; i = pattern.find("(?", i + 1)) {
    if (!pattern.substr(i + 2).starts_with(':')) return false;
  }
  return pattern.find("\\p") == pattern.npos && pattern.find("\\P") == pattern.npos;
}

}  // namespace

void FuzzOne(std::string_view input) {
  const size_t end = input.find('\0');
  const std::string_view pattern = input.substr(0, end);
  const std::string_view text = end == input.npos ? std::string_view() : input.substr(end + 1);
  if (text.size() > kMaxTextBytes || !tokenizer::IsValidUtf8(text)) return;
  // One of the two, because a mutated input is as likely to have the other size.
  const PatternMatch match = input.size() % 2 == 0 ? PatternMatch::kWhole : PatternMatch::kSearch;
  const Result schema = MatchText(pattern, text, PatternSyntax::kEcma, match, TextSpelling::kUtf8);
  if (schema != Result::kInvalid) {
    const Result json = MatchText(pattern, Spell(text), PatternSyntax::kEcma, match, TextSpelling::kJsonString);
    Require(!IsKnown(schema) || !IsKnown(json) || schema == json, "both spellings of a text match or none does");
  }
  const Result plain = MatchText(pattern, text, PatternSyntax::kRe2, match, TextSpelling::kUtf8);
  if (!IsKnown(plain) || !IsComparable(pattern)) return;
  RE2::Options options;
  options.set_log_errors(false);
  const RE2 oracle(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!oracle.ok()) return;
  const re2::StringPiece piece(text.data(), text.size());
  const bool expected =
      match == PatternMatch::kWhole ? RE2::FullMatch(piece, oracle) : RE2::PartialMatch(piece, oracle);
  Require((plain == Result::kMatch) == expected, "RE2 agrees");
}

}  // namespace vllm
