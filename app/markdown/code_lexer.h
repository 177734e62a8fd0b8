// CodeLexer: finds comments, strings, numbers and keywords in one line of code, in time proportional to its length. The
// state at the end of a line is a value, so that the unfinished line of a stream can be read again.
//
// This is not a parser: it knows the lexical rules that most languages share, and tables of what differs. (GNU
// source-highlight was tried: it matches with backtracking regular expressions, and a hostile line of 1,000 bytes took
// up to 0.47 s in Perl and 0.38 s in Python, without a way to stop it.)
// Pure functions and plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace vllm::app {

struct CodeLanguage;

// Returns the language that an info string, such as "c++ {.x}", begins with, or null if it is unknown.
const CodeLanguage* FindCodeLanguage(std::string_view info);

enum class CodeTokenKind : uint8_t { kPlain, kComment, kString, kNumber, kKeyword, kAdded, kRemoved };

struct CodeToken {
  size_t begin;
  size_t end;
  CodeTokenKind kind;
};

// Says which token continues on the next line: 0: none, 1: a block comment, 2 + i: a string of the i-th kind of quote.
using CodeState = uint8_t;

// Returns the tokens of `line`, which cover it without gaps, and updates `state`. A null language gives one plain
// token.
std::vector<CodeToken> LexCodeLine(const CodeLanguage* language, std::string_view line, CodeState& state);

}  // namespace vllm::app
