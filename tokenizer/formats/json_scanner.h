// Reads JSON text front to back without building a tree: for the two large members of tokenizer.json (a vocabulary of
// 150,000 entries, as many merges), which a tree would make slow to load. The small members are cut out as raw text.
// One thread; the text is borrowed and must be valid UTF-8. Every error is a TokenizerError with the byte offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vllm {

class JsonScanner {
 public:
  JsonScanner(std::string_view text, std::string_view name_for_errors) : text_(text), name_(name_for_errors) {}

  // Consume the opening bracket, then call NextMember / NextElement until it returns false.
  void BeginObject() { Expect('{'); }
  void BeginArray() { Expect('['); }
  // True with the member's key read, the scanner standing at its value; false at the closing brace, which it consumes.
  bool NextMember(std::string& key);
  bool NextElement();

  // The view is valid until the next ReadString (it shows the text itself unless the string has escapes).
  std::string_view ReadString();
  int64_t ReadInteger();
  double ReadNumber();
  // Passes over one value of any kind, nested at most kMaxDepth deep, and returns its text. Only brackets and strings
  // are checked: whoever reads the value checks the rest.
  std::string_view SkipValue();
  // First character of the next value.
  char Peek();
  void ExpectEnd();

  [[noreturn]] void Fail(const std::string& why) const;

  static constexpr int kMaxDepth = 64;

 private:
  void SkipSpace();
  void Expect(char c);
  void SkipString();
  uint32_t ReadHex4();
  std::string_view ReadEscapedString(size_t start);

  std::string_view text_;
  std::string_view name_;
  size_t position_ = 0;
  bool first_ = false;
  std::string scratch_;
};

}  // namespace vllm
