// Where a pre-tokenizer or a Replace finds its matches in a text: a literal string, a class of characters, one of the
// well-known regular expressions (word_scanner.h) or any regular expression (onig_pattern.h).
// Read-only after construction, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

struct Match {
  size_t begin;
  size_t end;
  bool is_match;
};

class TextPattern {
 public:
  // About how many pieces one call finds, so that what holds them stays small however long the text is.
  static constexpr size_t kBatch = 512;

  virtual ~TextPattern() = default;
  // Cuts text from `from` on into matches and what lies between them, without a hole; appends to `matches`. Returns
  // where it stopped: at the end of the text, or right after a match, where the next call goes on.
  // REQUIRES: text is valid UTF-8; `from` is 0 or what the call before returned, < text.size().
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

// A literal string and everything up to the next one.
class LiteralStartPattern : public TextPattern {
 public:
  // REQUIRES: literal is not empty.
  explicit LiteralStartPattern(std::string literal) : literal_(std::move(literal)) {}
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  std::string literal_;
};

// Single characters, or with `whole_runs` runs, of the CharClass bits; with `complement` of all other characters.
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

// Runs of `length` characters; the last may be shorter.
class FixedLengthPattern : public TextPattern {
 public:
  // REQUIRES: length > 0.
  explicit FixedLengthPattern(size_t length) : length_(length) {}
  size_t FindMatches(std::string_view text, size_t from, std::vector<Match>& matches) const override;

 private:
  size_t length_;
};

std::unique_ptr<TextPattern> MakeLiteralPattern(const std::string& literal);
// The fastest pattern that means `regex`. Throws TokenizerError when it does not compile.
std::unique_ptr<TextPattern> MakeRegexPattern(const std::string& regex);

}  // namespace vllm
