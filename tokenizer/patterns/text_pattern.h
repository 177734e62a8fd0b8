// Patterns that pre-tokenizers and Replace find in a text, such as a literal string, a class of characters, a
// well-known regular expression (word_scanner.h) or an arbitrary one (onig_pattern.h).
// A pattern is owned by the step of the tokenizer that searches for it. Read-only after construction, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

struct Match {
  size_t begin;
  size_t end;
  bool is_match;
};

class TextPattern {
 public:
  // One call finds at most about this many pieces, so that the list of matches stays small for a text of any length.
  static constexpr size_t kBatch = 512;

  virtual ~TextPattern() = default;
  // Splits text from `from` on into matches and the gaps between them, and appends both to `matches`. Returns the
  // position at which it stopped: the end of the text, or the end of a match, from which the next call continues.
  // REQUIRES: text is valid UTF-8; `from` is 0 or the previous return value, and < text.size().
  virtual size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const = 0;
};

class LiteralPattern : public TextPattern {
 public:
  // REQUIRES: literal is not empty.
  explicit LiteralPattern(std::string literal) : literal_(std::move(literal)) {}
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  std::string literal_;
};

// A literal string and the text after it, up to its next occurrence or the end of the text.
class LiteralStartPattern : public TextPattern {
 public:
  // REQUIRES: literal is not empty.
  explicit LiteralStartPattern(std::string literal) : literal_(std::move(literal)) {}
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  std::string literal_;
};

// Characters that have one of the CharClass bits in `classes`, or with `complement` all other characters. Each match is
// one character, or with `whole_runs` a maximal run of such characters.
class ClassPattern : public TextPattern {
 public:
  ClassPattern(uint16_t classes, bool whole_runs, bool complement)
      : classes_(classes), whole_runs_(whole_runs), complement_(complement) {}
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  uint16_t classes_;
  bool whole_runs_;
  bool complement_;
};

// \w+|[^\w\s]+
class WordOrSymbolsPattern : public TextPattern {
 public:
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;
};

// Runs of `length` characters. The last run may be shorter.
class FixedLengthPattern : public TextPattern {
 public:
  // REQUIRES: length > 0.
  explicit FixedLengthPattern(size_t length) : length_(length) {}
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  size_t length_;
};

// An empty literal matches before every character and at the end of the text.
std::unique_ptr<TextPattern> MakeLiteralPattern(const std::string& literal);
// Returns the WordScanner for `regex` as a pattern, or an OnigPattern if there is none. Throws TokenizerError like
// OnigPattern.
std::unique_ptr<TextPattern> MakeRegexPattern(const std::string& regex);

}  // namespace vllm::tokenizer
