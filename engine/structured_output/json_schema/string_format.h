// The values of the keyword `format` (JSON Schema Validation 2020-12, section 7.3). Pure functions on the store; one
// thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

enum class FormatKind : uint8_t { kEnforced, kNotSupported, kUnknown };

// kNotSupported: a format of the specification that is not enforced.
FormatKind KindOfFormat(std::string_view name);
// Returns the strings of an enforced format, as the inside of JSON strings. Stricter than the specification in one
// point: labels of host names have no hyphens as third and fourth character, because such names need IDNA's rules.
RegexId StringsOfFormat(RegexStore& store, std::string_view name);

}  // namespace vllm
