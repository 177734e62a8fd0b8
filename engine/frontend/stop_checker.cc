#include "engine/frontend/stop_checker.h"

#include <algorithm>
#include <utility>

#include "tokenizer/unicode/utf8.h"

namespace vllm {

StopChecker::StopChecker(std::vector<std::string> stop, bool include_stop_str_in_output)
    : stop_(std::move(stop)), include_(include_stop_str_in_output) {
  if (include_) return;
  for (const std::string& s : stop_) holdback_ = std::max(holdback_, tokenizer::CountCodePoints(s) - 1);
}

std::optional<StopChecker::Match> StopChecker::Find(std::string_view text, size_t num_new_bytes) const {
  if (num_new_bytes == 0) return std::nullopt;
  std::optional<Match> best;
  size_t best_end = 0;
  for (size_t i = 0; i < stop_.size(); ++i) {
    const std::string& s = stop_[i];
    // Search from the earliest start of a match that ends in the new bytes.
    const size_t reach = num_new_bytes + s.size() - 1;
    const size_t at = text.find(s, text.size() > reach ? text.size() - reach : 0);
    if (at == std::string_view::npos) continue;
    const size_t end = at + s.size();
    if (best && end >= best_end) continue;
    best = Match{i, include_ ? end : at};
    best_end = end;
  }
  return best;
}

}  // namespace vllm
