#include "app/hub/pull/byte_ranges.h"

#include <algorithm>

namespace vllm::app {

void ByteRanges::Add(ByteRange range) {
  if (range.size() <= 0) return;
  // The ranges from `first` to before `last` overlap or touch the new one.
  const auto first =
      std::find_if(ranges_.begin(), ranges_.end(), [&](ByteRange other) { return other.end >= range.begin; });
  const auto last = std::find_if(first, ranges_.end(), [&](ByteRange other) { return other.begin > range.end; });
  for (auto it = first; it != last; ++it) {
    range.begin = std::min(range.begin, it->begin);
    range.end = std::max(range.end, it->end);
  }
  ranges_.insert(ranges_.erase(first, last), range);
}

int64_t ByteRanges::total() const {
  int64_t bytes = 0;
  for (const ByteRange range : ranges_) bytes += range.size();
  return bytes;
}

int64_t ByteRanges::prefix() const { return ranges_.empty() || ranges_.front().begin > 0 ? 0 : ranges_.front().end; }

std::optional<ByteRange> ByteRanges::FirstGap(int64_t size) const {
  int64_t begin = 0;
  for (const ByteRange range : ranges_) {
    if (range.begin > begin) return ByteRange{begin, std::min(range.begin, size)};
    begin = range.end;
  }
  if (begin >= size) return std::nullopt;
  return ByteRange{begin, size};
}

}  // namespace vllm::app
