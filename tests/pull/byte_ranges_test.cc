#include "app/hub/pull/byte_ranges.h"

#include <gtest/gtest.h>

#include <set>

namespace vllm::app {
namespace {

using Ranges = std::vector<ByteRange>;

TEST(ByteRangesTest, TouchingRangesBecomeOne) {
  ByteRanges ranges;
  ranges.Add({10, 20});
  ranges.Add({30, 40});
  EXPECT_EQ(ranges.ranges(), (Ranges{{10, 20}, {30, 40}}));
  ranges.Add({20, 30});
  EXPECT_EQ(ranges.ranges(), (Ranges{{10, 40}}));
}

TEST(ByteRangesTest, EmptyRangesAreIgnored) {
  ByteRanges ranges;
  ranges.Add({5, 5});
  EXPECT_EQ(ranges.ranges(), Ranges());
  EXPECT_EQ(ranges.prefix(), 0);
  EXPECT_EQ(ranges.FirstGap(0), std::nullopt);
}

TEST(ByteRangesTest, GapEndsAtTheNextRangeOrTheEndOfTheFile) {
  ByteRanges ranges;
  EXPECT_EQ(ranges.FirstGap(100), (ByteRange{0, 100}));
  ranges.Add({0, 10});
  ranges.Add({20, 30});
  EXPECT_EQ(ranges.FirstGap(100), (ByteRange{10, 20}));
  ranges.Add({10, 20});
  EXPECT_EQ(ranges.FirstGap(100), (ByteRange{30, 100}));
  EXPECT_EQ(ranges.FirstGap(30), std::nullopt);
}

TEST(ByteRangesTest, AgreesWithASetOfBytes) {
  constexpr int64_t kSize = 64;
  uint64_t state = 1;
  const auto next = [&](int64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(limit));
  };
  for (int run = 0; run < 200; ++run) {
    ByteRanges ranges;
    std::set<int64_t> bytes;
    for (int step = 0; step < 20; ++step) {
      const int64_t begin = next(kSize);
      const int64_t end = begin + next(kSize - begin + 1);
      ranges.Add({begin, end});
      for (int64_t i = begin; i < end; ++i) bytes.insert(i);
      ASSERT_EQ(ranges.total(), static_cast<int64_t>(bytes.size()));
      int64_t prefix = 0;
      while (bytes.contains(prefix)) ++prefix;
      ASSERT_EQ(ranges.prefix(), prefix);
      int64_t gap_end = prefix;
      while (gap_end < kSize && !bytes.contains(gap_end)) ++gap_end;
      const std::optional<ByteRange> gap = ranges.FirstGap(kSize);
      ASSERT_EQ(gap, prefix < kSize ? std::optional(ByteRange{prefix, gap_end}) : std::nullopt);
    }
  }
}

}  // namespace
}  // namespace vllm::app
