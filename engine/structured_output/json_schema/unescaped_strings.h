// Strings of JSON as text without escapes. Pure function on a RegexStore; one thread at a time.
#pragma once

#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

// The texts whose spellings inside a JSON string are in `strings`. REQUIRES: `strings` has all spellings of a text, or
// none. Throws GrammarLimitError.
RegexId UnescapedStrings(RegexStore& store, RegexId strings);

}  // namespace vllm
