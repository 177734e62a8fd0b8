// Reads JSON text front to back without building a tree: for the two large members of tokenizer.json (a vocabulary of
// 150,000 entries, as many merges), which a tree would make slow to load. The small members are cut out as raw text.
// One thread; the text is borrowed and must be valid UTF-8. Every error is a TokenizerError with the byte offset.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
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

// The members of a JSON object as raw text, so that each is read in the way that suits it: the small ones as trees, the
// large ones by JsonScanner. The text is borrowed.
using RawMembers = std::map<std::string, std::string_view, std::less<>>;

// A repeated member counts as its last. Throws TokenizerError.
RawMembers ReadMembers(std::string_view json, const std::string& name);

// The members of a JSON object and of the object that one of them is, in one pass.
struct NestedMembers {
  RawMembers outer;  // without `key`
  RawMembers inner;
  bool has_inner = false;
};
NestedMembers ReadNestedMembers(std::string_view json, std::string_view key, const std::string& name);

// A small member as a tree; null when it is absent. Throws TokenizerError.
nlohmann::json ParseMember(const RawMembers& members, std::string_view key, const std::string& name);
// "" and false when it is absent or null.
std::string OptionalString(const RawMembers& members, std::string_view key, const std::string& name);
bool OptionalBool(const RawMembers& members, std::string_view key, const std::string& name);
// An integer of [0, limit), or `fallback` when it is absent or null.
int64_t OptionalInteger(const RawMembers& members, std::string_view key, const std::string& name, int64_t limit,
                        int64_t fallback);

}  // namespace vllm
