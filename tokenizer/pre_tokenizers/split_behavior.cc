#include "tokenizer/pre_tokenizers/split_behavior.h"

#include <algorithm>

#include "tokenizer/formats/tokenizer_error.h"

namespace vllm {

SplitBehavior ParseSplitBehavior(std::string_view name, const std::string& where) {
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  throw TokenizerError("reading " + where + ": unknown behavior " + QuoteForError(name));
}

void ApplyBehavior(SplitBehavior behavior, std::vector<Match>& matches) {
  if (behavior == SplitBehavior::kRemoved) return;
  size_t count = 0;
  bool previous_is_match = false;
  const bool backwards = behavior == SplitBehavior::kMergedWithNext;
  if (backwards) std::reverse(matches.begin(), matches.end());
  for (const Match match : matches) {
    bool merge = false;
    if (behavior == SplitBehavior::kContiguous) merge = match.is_match == previous_is_match;
    if (behavior == SplitBehavior::kMergedWithPrevious || backwards) merge = match.is_match && !previous_is_match;
    previous_is_match = match.is_match;
    if (!merge || count == 0) {
      matches[count++] = {match.begin, match.end, false};
    } else if (backwards) {
      matches[count - 1].begin = match.begin;
    } else {
      matches[count - 1].end = match.end;
    }
  }
  matches.resize(count);
  if (backwards) std::reverse(matches.begin(), matches.end());
}

}  // namespace vllm
