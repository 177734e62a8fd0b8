// Reads JSON text front to back without building a tree. Trees would be slow for the two large members of
// tokenizer.json, for example a vocabulary of 150,000 entries and as many merges. ReadMembers returns all members as
// raw text, and ParseMember parses a small one. One thread. The text is borrowed and must be valid UTF-8. Every error
// is a TokenizerError, which contains the byte offset if a JsonScanner throws it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vllm::tokenizer {

class JsonScanner {
 public:
  JsonScanner(std::string_view text, std::string_view name_for_errors) : text_(text), name_(name_for_errors) {}

  // Consume the opening bracket. The caller then calls NextMember or NextElement until the result is false.
  void BeginObject() { Expect('{'); }
  void BeginArray() { Expect('['); }
  // Reads the key of the next member and stops before its value. Consumes the closing brace and returns false if there
  // is no member left.
  bool NextMember(std::string& key);
  // Stops before the next element. Consumes the closing bracket and returns false if there is no element left.
  bool NextElement();

  // The view is valid until the next ReadString or NextMember. It points into the JSON text unless the string has
  // escapes.
  std::string_view ReadString();
  int64_t ReadInteger();
  double ReadNumber();
  // Skips one value of any type, nested at most kMaxDepth levels deep, and returns its JSON. Checks only that
  // brackets match and strings end; the code that parses the value must check the rest.
  std::string_view SkipValue();
  // Skips whitespace and returns the first character of the next value.
  char Peek();
  // Throws unless only whitespace remains.
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

// The members of a JSON object as raw text, which is borrowed. The caller parses small members as trees and large
// members with JsonScanner.
using RawMembers = std::map<std::string, std::string_view, std::less<>>;

// If a member is repeated, the last value wins. Throws TokenizerError.
RawMembers ReadMembers(std::string_view json, const std::string& name);

// The members of a JSON object, and of the object that is its member `key`, read in one pass.
struct NestedMembers {
  RawMembers outer;  // without `key`
  RawMembers inner;
  bool has_inner = false;
};
NestedMembers ReadNestedMembers(std::string_view json, std::string_view key, const std::string& name);

// Parses a small member. Returns JSON null if the member is absent. Throws TokenizerError.
nlohmann::json ParseMember(const RawMembers& members, std::string_view key, const std::string& name);
// Return "" or false if the member is absent or null. Throw TokenizerError if it has another type.
std::string OptionalString(const RawMembers& members, std::string_view key, const std::string& name);
bool OptionalBool(const RawMembers& members, std::string_view key, const std::string& name);
// Returns an integer in [0, limit), or `fallback` if the member is absent or null.
int64_t OptionalInteger(const RawMembers& members, std::string_view key, const std::string& name, int64_t limit,
                        int64_t fallback);

}  // namespace vllm::tokenizer
