// ParsePattern: regular expressions as people write them, as expressions of a RegexStore. Pure functions on the store;
// one thread at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/structured_output/regex/code_point_set.h"
#include "engine/structured_output/regex/regex_store.h"

namespace vllm {

enum class PatternSyntax : uint8_t {
  kEcma,  // ECMA-262 with the u flag, as JSON Schema's `pattern`
  kRe2,   // RE2: --regex, structural tags
  kRust,  // the same with the \d, \w and \s of Rust's regex, which are classes of Unicode: Lark
};

enum class PatternMatch : uint8_t {
  kWhole,   // the whole text matches
  kSearch,  // some part of the text matches
};

// Returns the texts that the pattern matches, in the given spelling. Exact, or an error: of what an automaton cannot
// do, backreferences, look-behind and word boundaries are rejected, and look-ahead except at the top level of the
// pattern. Throws RequestError `<why> at character <n>`; GrammarLimitError.
RegexId ParsePattern(RegexStore& store, std::string_view pattern, PatternSyntax syntax, PatternMatch match,
                     TextSpelling spelling);

}  // namespace vllm
