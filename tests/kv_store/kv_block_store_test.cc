#include "engine/kv_store/kv_block_store.h"

#include <sys/file.h>

#include "tests/kv_store/kv_store_test_util.h"

namespace vllm {
namespace {

class KVBlockStoreTest : public KVStoreTest {};

TEST_F(KVBlockStoreTest, WrittenBlocksAreRead) {
  KVBlockStore store(Options());
  EXPECT_EQ(Find(store, 1), Found::kNo);
  for (int32_t number = 1; number <= 3; ++number) EXPECT_TRUE(Write(store, number));
  for (int32_t number = 1; number <= 3; ++number) EXPECT_EQ(Find(store, number), Found::kYes);
  EXPECT_FALSE(store.Contains(TestBlock(4).hash()));
  EXPECT_EQ(store.num_blocks(), 3);
  EXPECT_EQ(store.stats().num_blocks_written, 3);
  EXPECT_EQ(store.stats().bytes_written, 3 * payload_bytes_);
  EXPECT_EQ(store.stats().num_blocks_read, 3);
  EXPECT_EQ(store.stats().bytes_read, 3 * payload_bytes_);
  EXPECT_EQ(store.TakeWarning(), "");
}

TEST_F(KVBlockStoreTest, BlocksOutliveTheStore) {
  WriteRange(1, 20);
  KVBlockStore store(Options());
  EXPECT_EQ(store.num_blocks(), 20);
  for (int32_t number = 1; number <= 20; ++number) EXPECT_EQ(Find(store, number), Found::kYes);
}

TEST_F(KVBlockStoreTest, RefreshFindsBlocksThatAnotherStoreIsWriting) {
  KVBlockStore writer(Options());
  KVBlockStore reader(Options());
  for (int32_t number = 1; number <= 5; ++number) {
    ASSERT_TRUE(Write(writer, number));
    EXPECT_FALSE(reader.Contains(TestBlock(number).hash()));
    reader.Refresh();
    EXPECT_EQ(Find(reader, number), Found::kYes);
  }
}

TEST_F(KVBlockStoreTest, RefreshAfterAnIntervalThatHasNotPassedDoesNothing) {
  KVBlockStore writer(Options());
  KVBlockStore reader(Options());
  ASSERT_TRUE(Write(writer, 1));
  reader.RefreshAfter(std::chrono::hours(1));
  EXPECT_EQ(reader.num_blocks(), 0);
  reader.RefreshAfter(std::chrono::milliseconds(0));
  EXPECT_EQ(reader.num_blocks(), 1);
}

TEST_F(KVBlockStoreTest, BlockIsWrittenOnlyOnce) {
  WriteRange(1, 1);
  KVBlockStore store(Options());
  const int64_t before = TotalBytes();
  EXPECT_FALSE(Write(store, 1));
  EXPECT_EQ(TotalBytes(), before);
}

TEST_F(KVBlockStoreTest, BlockWithTheSameHashButAnotherKeyIsNotReturned) {
  const TestBlock block(1);
  std::vector<int32_t> other_tokens = {9, 9, 9, 9};
  std::vector<KVBlockKey> others(3, block.key());
  others[0].token_ids = other_tokens;
  others[1].parent_hash.lo ^= 1;
  others[2].extra_keys = "pepper";
  for (const KVBlockKey& other : others) {
    KVBlockStore store(Options());
    Write(store, 1);
    std::vector<std::byte> payload(static_cast<size_t>(payload_bytes_));
    EXPECT_FALSE(store.Read(other, payload));
    EXPECT_EQ(store.stats().num_blocks_rejected, 1);
    EXPECT_FALSE(store.Contains(block.hash()));
    // Not a reason to erase it.
    KVBlockStore next(Options());
    EXPECT_EQ(Find(next, 1), Found::kYes);
  }
}

TEST_F(KVBlockStoreTest, WrongSizesAreRejected) {
  KVBlockStore store(Options());
  const TestBlock block(1);
  EXPECT_FALSE(store.Write(block.key(), block.Payload(payload_bytes_ - 1)));
  EXPECT_FALSE(store.Write(TestBlock(1, 5).key(), block.Payload(payload_bytes_)));
  ASSERT_TRUE(Write(store, 1));
  std::vector<std::byte> payload(static_cast<size_t>(payload_bytes_) + 1);
  EXPECT_FALSE(store.Read(block.key(), payload));
  EXPECT_TRUE(store.Contains(block.hash()));
}

TEST_F(KVBlockStoreTest, BlocksOfAnotherIdentityBlockSizeOrPayloadSizeAreNotFound) {
  WriteRange(1, 3);
  KVBlockStore::Options identity = Options();
  identity.identity = "other model";
  KVBlockStore::Options payload = Options();
  payload.payload_bytes *= 2;
  KVBlockStore::Options tokens = Options();
  tokens.block_size = 8;
  for (const KVBlockStore::Options& options : {identity, payload, tokens}) {
    KVBlockStore store(options);
    EXPECT_EQ(store.num_blocks(), 0);
    const TestBlock block(7, options.block_size);
    EXPECT_TRUE(store.Write(block.key(), block.Payload(options.payload_bytes)));
  }
  KVBlockStore store(Options());
  EXPECT_EQ(store.num_blocks(), 3);
  EXPECT_EQ(Segments().size(), 4u);
}

TEST_F(KVBlockStoreTest, NextStoreResumesThePartialSegment) {
  for (int32_t number = 1; number <= 10; ++number) WriteRange(number, number);
  EXPECT_EQ(Segments().size(), 1u);
  KVBlockStore store(Options());
  EXPECT_EQ(store.num_blocks(), 10);
}

TEST_F(KVBlockStoreTest, SegmentInUseIsNotResumed) {
  KVBlockStore first(Options());
  ASSERT_TRUE(Write(first, 1));
  KVBlockStore second(Options());
  ASSERT_TRUE(Write(second, 2));
  EXPECT_EQ(Segments().size(), 2u);
}

TEST_F(KVBlockStoreTest, WriterContinuesInAnotherSegmentWhenOneIsFull) {
  const uint32_t num_slots = KVSlotsFor(static_cast<uint64_t>(max_bytes_ / 16), 64, 4);
  WriteRange(1, static_cast<int32_t>(num_slots) + 1);
  EXPECT_EQ(Segments().size(), 2u);
  KVBlockStore store(Options());
  EXPECT_EQ(store.num_blocks(), num_slots + 1);
}

TEST_F(KVBlockStoreTest, WriterWhoseSegmentWasDeletedStartsAnotherOne) {
  KVBlockStore store(Options());
  ASSERT_TRUE(Write(store, 1));
  std::filesystem::remove(PathOf(Segments().at(0)));
  ASSERT_TRUE(Write(store, 2));
  EXPECT_EQ(Find(store, 1), Found::kNo);
  EXPECT_EQ(Find(store, 2), Found::kYes);
  EXPECT_EQ(Segments().size(), 1u);
}

TEST_F(KVBlockStoreTest, BlocksOfADeletedSegmentAreForgotten) {
  WriteRange(1, 3);
  KVBlockStore store(Options());
  ASSERT_EQ(Find(store, 1), Found::kYes);
  std::filesystem::remove(PathOf(Segments().at(0)));
  EXPECT_EQ(store.num_blocks(), 3);
  store.Refresh();
  EXPECT_EQ(store.num_blocks(), 0);
  EXPECT_EQ(Find(store, 1), Found::kNo);
}

TEST_F(KVBlockStoreTest, ReadOfABlockInADeletedSegmentFails) {
  WriteRange(1, 3);
  KVBlockStore store(Options());
  std::filesystem::remove(PathOf(Segments().at(0)));
  EXPECT_EQ(Find(store, 1), Found::kNo);
  EXPECT_EQ(store.stats().num_blocks_rejected, 1);
}

TEST_F(KVBlockStoreTest, IndexHasNoMoreBlocksThanItsLimit) {
  WriteRange(1, 20);
  KVBlockStore::Options options = Options();
  options.max_indexed_blocks = 10;
  KVBlockStore store(options);
  EXPECT_EQ(store.num_blocks(), 10);
  EXPECT_FALSE(Write(store, 21));
}

TEST_F(KVBlockStoreTest, NothingIsWrittenWhileAnotherProcessKeepsTheDirectoryLocked) {
  WriteRange(1, 3);
  const tokenizer::UniqueFd fd(open(PathOf("lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(fd.get(), LOCK_EX), 0);
  KVBlockStore store(Options());
  EXPECT_EQ(Find(store, 3), Found::kYes);
  EXPECT_FALSE(Write(store, 4));
  EXPECT_TRUE(store.is_writing_on());
  EXPECT_EQ(store.TakeWarning(), "");
}

TEST_F(KVBlockStoreTest, LimitTooSmallForOneBlockTurnsWritingOff) {
  max_bytes_ = 4096;
  KVBlockStore store(Options());
  EXPECT_FALSE(Write(store, 1));
  EXPECT_FALSE(store.is_writing_on());
  const std::string warning = store.TakeWarning();
  EXPECT_NE(warning.find("nothing more is written: the limit is too small for one block (4096 bytes, needs 4160)"),
            std::string::npos)
      << warning;
  EXPECT_EQ(store.TakeWarning(), "");
}

}  // namespace
}  // namespace vllm
