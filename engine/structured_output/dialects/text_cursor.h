// TextCursor: reads a grammar from its start to its end, and tells where an error is. Borrows the text; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vllm {

class TextCursor {
 public:
  static constexpr size_t kMaxBytes = size_t{1} << 20;

  // Throws RequestError if the text is too long, is not UTF-8 or contains a NUL byte.
  explicit TextCursor(std::string_view text);

  // Throws RequestError `grammar: <why> at line <n>, column <n>`, for the current position or another one.
  [[noreturn]] void Fail(const std::string& why) const { FailAt(at_, why); }
  [[noreturn]] void FailAt(size_t at, const std::string& why) const;

  size_t at() const { return at_; }
  void MoveTo(size_t at) { at_ = at; }
  bool AtEnd() const { return at_ == text_.size(); }
  // Returns the byte `ahead` bytes further, or 0 after the end.
  char Peek(size_t ahead = 0) const { return ahead < text_.size() - at_ ? text_[at_ + ahead] : '\0'; }
  bool LooksAt(std::string_view text) const { return text_.substr(at_).starts_with(text); }
  bool Take(std::string_view text);
  // Fails unless `text` comes next.
  void Expect(std::string_view text);
  char32_t TakeCodePoint();
  std::string_view text() const { return text_; }
  std::string_view TextFrom(size_t start) const { return text_.substr(start, at_ - start); }
  void SkipLine();

  // Reads letters, digits, - and _, perhaps none.
  std::string_view TakeName();
  // Reads a decimal number of at most `limit`, or nothing.
  std::optional<uint32_t> TakeNumber(uint32_t limit);
  // Reads num_digits hexadecimal digits of a Unicode scalar value.
  char32_t TakeHex(size_t num_digits);
  // Reads {m}, {m,}, {,n} or {m,n} after the brace. GrammarBuilder::kUnbounded stands for no upper bound.
  void TakeCounts(uint32_t& min, uint32_t& max);

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace vllm
