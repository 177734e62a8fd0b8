#include "tokenizer/formats/raw_json.h"

#include <nlohmann/json.hpp>

#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/formats/python_json.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm {

RawMembers ReadMembers(std::string_view json, const std::string& name) {
  return ReadNestedMembers(json, "", name).outer;
}

NestedMembers ReadNestedMembers(std::string_view json, std::string_view key, const std::string& name) {
  NestedMembers members;
  JsonScanner scanner(json, name);
  scanner.BeginObject();
  for (std::string outer; scanner.NextMember(outer);) {
    if (key.empty() || outer != key) {
      members.outer.insert_or_assign(outer, scanner.SkipValue());
      continue;
    }
    members.has_inner = true;
    members.inner.clear();
    scanner.BeginObject();
    for (std::string inner; scanner.NextMember(inner);) members.inner.insert_or_assign(inner, scanner.SkipValue());
  }
  scanner.ExpectEnd();
  return members;
}

nlohmann::json ParseMember(const RawMembers& members, std::string_view key, const std::string& name) {
  const auto it = members.find(key);
  if (it == members.end()) return nullptr;
  nlohmann::json json = nlohmann::json::parse(ReplacePythonNumbers(it->second), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    throw TokenizerError("reading " + name + ": member " + std::string(key) + " is not valid JSON");
  }
  return json;
}

std::string OptionalString(const RawMembers& members, std::string_view key, const std::string& name) {
  const nlohmann::json json = ParseMember(members, key, name);
  if (json.is_null()) return "";
  if (!json.is_string()) throw TokenizerError("reading " + name + ": " + std::string(key) + " is not a string");
  return json.get<std::string>();
}

bool OptionalBool(const RawMembers& members, std::string_view key, const std::string& name) {
  const nlohmann::json json = ParseMember(members, key, name);
  if (json.is_null()) return false;
  if (!json.is_boolean()) throw TokenizerError("reading " + name + ": " + std::string(key) + " is not true or false");
  return json.get<bool>();
}

int64_t OptionalInteger(const RawMembers& members, std::string_view key, const std::string& name, int64_t limit,
                        int64_t fallback) {
  const nlohmann::json json = ParseMember(members, key, name);
  if (json.is_null()) return fallback;
  const bool fits = json.is_number_unsigned() && json.get<uint64_t>() < static_cast<uint64_t>(limit);
  if (!fits) {
    throw TokenizerError("reading " + name + ": " + std::string(key) + " is not an integer of 0.." +
                         std::to_string(limit - 1));
  }
  return static_cast<int64_t>(json.get<uint64_t>());
}

}  // namespace vllm
