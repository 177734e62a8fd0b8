// ByteRanges: the set of bytes of a file that have arrived. A value; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace vllm::app {

// The bytes [begin, end).
struct ByteRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// Invariant: the ranges are not empty, ascending, and neither overlap nor touch.
class ByteRanges {
 public:
  // Adds a range, which may be empty or overlap others. REQUIRES: 0 <= begin <= end.
  void Add(ByteRange range);
  void Clear() { ranges_.clear(); }

  const std::vector<ByteRange>& ranges() const { return ranges_; }
  int64_t total() const;
  // Returns the number of bytes that have arrived from the beginning without a gap.
  int64_t prefix() const;
  // Returns the first gap of a file of `size` bytes, or nullopt if there is none.
  std::optional<ByteRange> FirstGap(int64_t size) const;

 private:
  std::vector<ByteRange> ranges_;
};

}  // namespace vllm::app
