// The members of a JSON object as raw text, so that each is read in the way that suits it: the small ones as trees, the
// large ones by JsonScanner. The text is borrowed. Pure functions, any thread.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace vllm {

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
