// What becomes of the matches when a text is split at them ("behavior" in tokenizer.json). Pure functions, any thread.
// "the-final--countdown" split at "-":
//   Removed             the|final|countdown
//   Isolated            the|-|final|-|-|countdown
//   MergedWithPrevious  the-|final-|-|countdown
//   MergedWithNext      the|-final|-|-countdown
//   Contiguous          the|-|final|--|countdown
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/text_pattern.h"

namespace vllm {

enum class SplitBehavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Throws TokenizerError; `where` names the owner in it.
SplitBehavior ParseSplitBehavior(std::string_view name, const std::string& where);

// Turns the matches of a text into its pieces. A piece that still has is_match set is to be thrown away.
void ApplyBehavior(SplitBehavior behavior, std::vector<Match>& matches);

}  // namespace vllm
