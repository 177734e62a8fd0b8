// Free text between the parts of a grammar, as regular expressions over UTF-8. Pure functions on the store; one thread
// at a time.
#pragma once

#include <string>
#include <vector>

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

// The texts that contain none of the strings. REQUIRES: no string is empty.
RegexId TextWithout(RegexStore& store, const std::vector<std::string>& strings);
// The texts of `regex` of which no shorter beginning is one.
RegexId ShortestTexts(RegexStore& store, RegexId regex);

}  // namespace vllm
