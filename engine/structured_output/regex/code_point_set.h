// CodePointSet: a set of Unicode scalar values, that is code points except surrogates. A plain value; any thread.
//
// CodePointsAsRegex: the texts of one code point of the set, in one of the ways to write text.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

struct CodePointRange {
  char32_t first = 0, last = 0;
  bool operator==(const CodePointRange&) const = default;
};

class CodePointSet {
 public:
  static constexpr char32_t kMax = 0x10FFFF;

  CodePointSet() = default;
  CodePointSet(std::initializer_list<CodePointRange> ranges) : CodePointSet(std::vector<CodePointRange>(ranges)) {}
  // The ranges may overlap. Surrogates are left out. REQUIRES: first <= last <= kMax in each range.
  explicit CodePointSet(std::vector<CodePointRange> ranges);
  static CodePointSet All() { return {{0, kMax}}; }

  // In ascending order, with gaps between them.
  std::span<const CodePointRange> ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool Contains(char32_t code_point) const;
  CodePointSet Union(const CodePointSet& other) const;
  CodePointSet Intersection(const CodePointSet& other) const;
  CodePointSet Complement() const;
  bool operator==(const CodePointSet&) const = default;

 private:
  std::vector<CodePointRange> ranges_;
};

// How the text that an expression describes is written in the output.
enum class TextSpelling : uint8_t {
  kUtf8,
  // Inside a JSON string (RFC 8259): quotation marks, backslashes and control characters are escaped. ASCII letters,
  // digits and spaces are not, because nobody writes them so, and expressions are much larger otherwise. Every other
  // code point may be written as \uXXXX, those above U+FFFF as a pair of surrogates. Without the quotation marks at the
  // ends.
  kJsonString,
};

RegexId CodePointsAsRegex(RegexStore& store, const CodePointSet& set, TextSpelling spelling);
// Returns Not(operand) among the well-formed texts of the spelling.
RegexId ComplementOfText(RegexStore& store, RegexId operand, TextSpelling spelling);
// The texts of any code points.
RegexId AnyText(RegexStore& store, TextSpelling spelling);

}  // namespace vllm
