// The named classes of patterns, and case folding. Pure functions; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "engine/structured_output/patterns/pattern.h"

namespace vllm {

// The class of \d, \w or \s. `letter` is lower case.
CodePointSet EscapeClass(char letter, PatternSyntax syntax);
// The class of [[:name:]], or nullopt.
std::optional<CodePointSet> PosixClass(std::string_view name);
// The code points of a general category, such as L, Lu or Letter, or of Any, ASCII or Alphabetic. nullopt if the name
// is not known.
std::optional<CodePointSet> UnicodeClass(std::string_view name);
// Adds the other cases of each code point.
CodePointSet FoldCase(const CodePointSet& set);

}  // namespace vllm
