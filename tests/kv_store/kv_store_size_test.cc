// Tests the limit on the size of the directory, and which segments are deleted.
#include "tests/kv_store/kv_store_test_util.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;

class KVStoreSizeTest : public KVStoreTest {
 protected:
  KVStoreSizeTest() {
    payload_bytes_ = 1000;
    // A segment has 4 slots.
    max_bytes_ = 16 * segment_bytes_;
  }
  // Writes 4 blocks, which fill a segment, and returns its name.
  std::string WriteSegment(int32_t first) {
    const std::vector<std::string> before = Segments();
    WriteRange(first, first + 3);
    for (const std::string& name : Segments()) {
      if (!std::binary_search(before.begin(), before.end(), name)) return name;
    }
    ADD_FAILURE() << "no new segment";
    return "";
  }

  const int64_t segment_bytes_ = 4224 + 4 * (1000 + 96);  // reserved for 4 slots
  const int64_t file_bytes_ = 4096 + 4 * 1000;            // of a full segment
};

TEST_F(KVStoreSizeTest, SizeStaysBelowTheLimitAndCloseToIt) {
  KVBlockStore store(Options());
  for (int32_t number = 1; number <= 1000; ++number) {
    ASSERT_TRUE(Write(store, number));
    ASSERT_LE(TotalBytes(), max_bytes_) << number;
  }
  // Less than one segment is missing.
  EXPECT_GE(TotalBytes(), max_bytes_ - segment_bytes_);
  EXPECT_GT(store.stats().bytes_evicted, 0);
  EXPECT_EQ(store.TakeWarning(), "");
  EXPECT_EQ(Find(store, 1), Found::kNo);
  EXPECT_EQ(Find(store, 1000), Found::kYes);
  EXPECT_GE(store.num_blocks(), 15 * 4);
}

TEST_F(KVStoreSizeTest, TwoStoresThatWriteInTurnsStayBelowTheLimit) {
  KVBlockStore first(Options());
  KVBlockStore second(Options());
  for (int32_t number = 1; number <= 500; ++number) {
    ASSERT_TRUE(Write(first, number));
    ASSERT_TRUE(Write(second, 1000 + number));
    ASSERT_LE(TotalBytes(), max_bytes_) << number;
  }
  EXPECT_GE(TotalBytes(), max_bytes_ - 3 * segment_bytes_);
}

TEST_F(KVStoreSizeTest, FilesOfEarlierRunsAndOtherModelsAreCountedAndDeleted) {
  WriteRange(1, 40);
  KVBlockStore::Options other = Options();
  other.identity = "other model";
  other.payload_bytes = 3000;
  {
    KVBlockStore store(other);
    for (int32_t number = 1; number <= 40; ++number) {
      const TestBlock block(number);
      ASSERT_TRUE(store.Write(block.key(), block.Payload(other.payload_bytes)));
      ASSERT_LE(TotalBytes(), max_bytes_) << number;
    }
  }
  KVBlockStore store(Options());
  EXPECT_LT(store.num_blocks(), 40);
}

TEST_F(KVStoreSizeTest, UnrelatedFilesAreCountedButNotDeleted) {
  KVBlockStore store(Options());
  WriteFile("notes.txt", std::string(static_cast<size_t>(max_bytes_ / 2), 'n'));
  for (int32_t number = 1; number <= 200; ++number) {
    ASSERT_TRUE(Write(store, number));
    ASSERT_LE(TotalBytes(), max_bytes_) << number;
  }
  EXPECT_TRUE(fs::exists(PathOf("notes.txt")));
}

TEST_F(KVStoreSizeTest, NothingIsWrittenWhileUnrelatedFilesFillTheDirectory) {
  KVBlockStore store(Options());
  WriteFile("notes.txt", std::string(static_cast<size_t>(max_bytes_), 'n'));
  EXPECT_FALSE(Write(store, 1));
  EXPECT_EQ(TotalBytes(), max_bytes_);
}

TEST_F(KVStoreSizeTest, SmallerLimitAppliesWhenTheStoreIsOpened) {
  for (int32_t i = 0; i < 8; ++i) WriteSegment(1 + 4 * i);
  max_bytes_ = 3 * segment_bytes_;
  KVBlockStore store(Options());
  EXPECT_LE(TotalBytes(), max_bytes_);
  EXPECT_GT(store.num_blocks(), 0);
  EXPECT_EQ(store.num_blocks(), 4 * static_cast<int64_t>(Segments().size()));
}

TEST_F(KVStoreSizeTest, LeastRecentlyUsedSegmentIsDeletedFirst) {
  const std::string first = WriteSegment(1);
  const std::string second = WriteSegment(5);
  const std::string third = WriteSegment(9);
  SetAge(first, 30);
  SetAge(second, 20);
  SetAge(third, 10);
  {
    KVBlockStore store(Options());
    ASSERT_EQ(Find(store, 2), Found::kYes);
  }
  max_bytes_ = 3 * file_bytes_ - 1;
  KVBlockStore{Options()};
  EXPECT_EQ(Segments(), (std::vector<std::string>{std::min(first, third), std::max(first, third)}));
  max_bytes_ = 2 * file_bytes_ - 1;
  KVBlockStore{Options()};
  EXPECT_EQ(Segments(), std::vector<std::string>{first});
}

TEST_F(KVStoreSizeTest, ReadMarksASegmentOncePerMinute) {
  const std::string name = WriteSegment(1);
  KVBlockStore store(Options());
  SetAge(name, 30);
  const auto old_time = fs::last_write_time(PathOf(name));
  ASSERT_EQ(Find(store, 1), Found::kYes);
  EXPECT_GT(fs::last_write_time(PathOf(name)), old_time);
  SetAge(name, 30);
  const auto second_time = fs::last_write_time(PathOf(name));
  ASSERT_EQ(Find(store, 2), Found::kYes);
  EXPECT_EQ(fs::last_write_time(PathOf(name)), second_time);
}

TEST_F(KVStoreSizeTest, SegmentsBeingWrittenAreNotDeleted) {
  KVBlockStore old_writer(Options());
  ASSERT_TRUE(Write(old_writer, 1));
  SetAge(Segments().at(0), 100);
  KVBlockStore store(Options());
  for (int32_t number = 101; number <= 200; ++number) ASSERT_TRUE(Write(store, number));
  EXPECT_EQ(Find(old_writer, 1), Found::kYes);
  ASSERT_TRUE(Write(old_writer, 2));
  KVBlockStore reader(Options());
  EXPECT_EQ(Find(reader, 1), Found::kYes);
  EXPECT_EQ(Find(reader, 2), Found::kYes);
}

TEST_F(KVStoreSizeTest, NothingIsWrittenWhileOtherWritersReserveAllSpace) {
  max_bytes_ = 2 * segment_bytes_ + 1000;
  payload_bytes_ = 4 * 1096;
  KVBlockStore first(Options());
  KVBlockStore second(Options());
  KVBlockStore third(Options());
  ASSERT_TRUE(Write(first, 1));
  ASSERT_TRUE(Write(second, 2));
  EXPECT_FALSE(Write(third, 3));
  EXPECT_TRUE(third.is_writing_on());
  EXPECT_EQ(third.TakeWarning(), "");
  EXPECT_LE(TotalBytes(), max_bytes_);
}

TEST_F(KVStoreSizeTest, DeletedSegmentStaysReadableWhileItIsOpen) {
  WriteRange(1, 4);
  KVBlockStore reader(Options());
  ASSERT_EQ(Find(reader, 1), Found::kYes);
  fs::remove(PathOf(Segments().at(0)));
  EXPECT_EQ(Find(reader, 2), Found::kYes);
  reader.Refresh();
  EXPECT_EQ(Find(reader, 2), Found::kNo);
}

}  // namespace
}  // namespace vllm
