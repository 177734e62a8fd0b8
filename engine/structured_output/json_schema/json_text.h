// The strings of JSON texts as regular expressions, without their quotation marks. Pure functions on a RegexStore; one
// thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

// Returns `text` as a JSON string with quotation marks, which escapes only quotation marks, backslashes and control
// characters. REQUIRES: text is valid UTF-8.
std::string QuoteJson(std::string_view text);

// All spellings of one of the strings, which may be many. REQUIRES: valid UTF-8.
RegexId SpellingsOf(RegexStore& store, std::vector<std::string> strings);
// The spelling of QuoteJson of any string.
RegexId CanonicalStrings(RegexStore& store);

}  // namespace vllm
