// Tests that damaged, truncated and invented segment files never yield a wrong block.
#include <random>

#include "tests/kv_store/kv_store_test_util.h"

namespace vllm {
namespace {

constexpr int32_t kNumBlocks = 3;

class KVStoreDamageTest : public KVStoreTest {
 protected:
  KVStoreDamageTest() {
    // A segment has 4 slots.
    max_bytes_ = 16 * (4224 + 4 * 160);
    WriteRange(1, kNumBlocks);
    name_ = Segments().at(0);
    bytes_ = ReadFile(name_);
  }
  // Replaces the segment's contents. Returns how many blocks a new store reads. Fails if one is wrong.
  int NumReadable(const std::string& bytes) const {
    WriteFile(name_, bytes);
    KVBlockStore store(Options());
    int count = 0;
    for (int32_t number = 1; number <= kNumBlocks; ++number) {
      const Found found = Find(store, number);
      EXPECT_NE(found, Found::kWrong);
      count += found == Found::kYes ? 1 : 0;
    }
    return count;
  }

  std::string name_;
  std::string bytes_;
};

TEST_F(KVStoreDamageTest, OneFlippedBitLosesTheBlockOrTheSegment) {
  const size_t heads = 128;
  const size_t payloads = 4096;
  const size_t head_bytes = 96;
  ASSERT_EQ(bytes_.size(), payloads + kNumBlocks * 64);
  for (size_t i = 0; i < bytes_.size(); ++i) {
    const bool is_head = i >= heads && i < heads + kNumBlocks * head_bytes;
    const int expected = i < heads ? 0 : is_head || i >= payloads ? kNumBlocks - 1 : kNumBlocks;
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes_;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      ASSERT_EQ(NumReadable(damaged), expected) << "byte " << i << " bit " << bit;
    }
  }
}

TEST_F(KVStoreDamageTest, TruncatedFileHasItsCompleteBlocks) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    const int expected = size < 4096 ? 0 : static_cast<int>((size - 4096) / 64);
    ASSERT_EQ(NumReadable(bytes_.substr(0, size)), expected) << size;
  }
}

TEST_F(KVStoreDamageTest, FileTruncatedWhileItIsOpenLosesItsBlocks) {
  KVBlockStore store(Options());
  ASSERT_EQ(Find(store, 1), Found::kYes);
  ASSERT_EQ(truncate(PathOf(name_).c_str(), 4096 + 64), 0);
  EXPECT_EQ(Find(store, 1), Found::kYes);
  EXPECT_EQ(Find(store, 2), Found::kNo);
  ASSERT_EQ(truncate(PathOf(name_).c_str(), 10), 0);
  EXPECT_EQ(Find(store, 1), Found::kNo);
}

TEST_F(KVStoreDamageTest, BlocksCanBeWrittenAfterAnyTruncation) {
  for (size_t size = 0; size < bytes_.size(); size += 7) {
    for (const std::string& name : Segments()) std::filesystem::remove(PathOf(name));
    WriteFile(name_, bytes_.substr(0, size));
    {
      KVBlockStore store(Options());
      for (int32_t number = 1; number <= 5; ++number) {
        if (!store.Contains(TestBlock(number).hash())) {
          ASSERT_TRUE(Write(store, number)) << size;
        }
      }
    }
    KVBlockStore store(Options());
    for (int32_t number = 1; number <= 5; ++number) ASSERT_EQ(Find(store, number), Found::kYes) << size;
  }
}

TEST_F(KVStoreDamageTest, PayloadWhoseWriterWasKilledBeforeTheHeadIsSkipped) {
  std::string bytes = bytes_;
  std::fill_n(bytes.begin() + 128 + 2 * 96, 96, '\0');
  EXPECT_EQ(NumReadable(bytes), 2);
  {
    KVBlockStore store(Options());
    ASSERT_TRUE(Write(store, 3));
    // The segment's fourth slot was the last one.
    ASSERT_TRUE(Write(store, 4));
  }
  EXPECT_EQ(Segments().size(), 2u);
  KVBlockStore store(Options());
  for (int32_t number = 1; number <= 4; ++number) EXPECT_EQ(Find(store, number), Found::kYes);
}

TEST_F(KVStoreDamageTest, FileWhoseWriterWasKilledBeforeTheHeaderIsDeleted) {
  WriteFile("0123456789abcdef.kvseg", "");
  KVBlockStore store(Options());
  EXPECT_EQ(Segments(), std::vector<std::string>{name_});
}

TEST_F(KVStoreDamageTest, RandomFilesAreIgnored) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 6000, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    ASSERT_EQ(NumReadable(bytes), 0);
  }
}

TEST_F(KVStoreDamageTest, RandomBytesAfterAValidHeaderAreIgnored) {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    std::string bytes = bytes_;
    for (size_t k = 128; k < bytes.size(); ++k) bytes[k] = static_cast<char>(random());
    ASSERT_EQ(NumReadable(bytes), 0);
  }
}

TEST_F(KVStoreDamageTest, SwappedHeadsAndPayloadsAreNotReturnedAsOtherBlocks) {
  std::string bytes = bytes_;
  std::swap_ranges(bytes.begin() + 128, bytes.begin() + 128 + 96, bytes.begin() + 128 + 96);
  EXPECT_EQ(NumReadable(bytes), kNumBlocks - 2);
  bytes = bytes_;
  std::swap_ranges(bytes.begin() + 4096, bytes.begin() + 4096 + 64, bytes.begin() + 4096 + 64);
  EXPECT_EQ(NumReadable(bytes), kNumBlocks - 2);
}

TEST_F(KVStoreDamageTest, HeadsOfAnotherSegmentAreIgnored) {
  KVBlockStore::Options options = Options();
  options.identity = "other model";
  {
    KVBlockStore other(options);
    ASSERT_TRUE(Write(other, 1));
  }
  std::vector<std::string> names = Segments();
  ASSERT_EQ(names.size(), 2u);
  const std::string stranger = ReadFile(names[0] == name_ ? names[1] : names[0]);
  EXPECT_EQ(NumReadable(bytes_.substr(0, 128) + stranger.substr(128)), 0);
}

TEST_F(KVStoreDamageTest, SparseFileOfHugeSizeIsIgnored) {
  WriteFile("0123456789abcdef.kvseg", bytes_.substr(0, 128));
  ASSERT_EQ(truncate(PathOf("0123456789abcdef.kvseg").c_str(), off_t{1} << 42), 0);
  KVBlockStore store(Options());
  // It exceeds the limit, so it was deleted before the blocks were read, or after all older files.
  EXPECT_LE(TotalBytes(), max_bytes_);
}

// Several stores write, read and are reopened, while files are damaged, truncated, deleted and replaced by each other.
TEST_F(KVStoreDamageTest, RandomOperationsNeverReturnAWrongBlockOrExceedTheLimit) {
  std::mt19937 random(3);
  std::vector<std::optional<KVBlockStore>> stores(3);
  int num_found = 0;
  for (int i = 0; i < 20000; ++i) {
    std::optional<KVBlockStore>& store = stores[random() % stores.size()];
    if (!store || random() % 100 == 0) {
      store.reset();
      store.emplace(Options());
    }
    const auto number = static_cast<int32_t>(random() % 100);
    const std::vector<std::string> names = Segments();
    const unsigned kind = random() % 20;
    if (kind < 8) {
      Write(*store, number);
    } else if (kind < 17 || names.empty()) {
      const Found found = Find(*store, number);
      ASSERT_NE(found, Found::kWrong);
      num_found += found == Found::kYes ? 1 : 0;
    } else if (kind == 17) {
      store->Refresh();
    } else if (random() % 5 == 0) {
      const std::string& name = names[random() % names.size()];
      std::string bytes = ReadFile(name);
      switch (random() % 4) {
        case 0:
          for (int k = 0; k < 3 && !bytes.empty(); ++k) bytes[random() % bytes.size()] ^= static_cast<char>(random());
          break;
        case 1:
          bytes.resize(random() % (bytes.size() + 1));
          break;
        case 2:
          std::filesystem::remove(PathOf(name));
          continue;
        default:
          bytes = ReadFile(names[random() % names.size()]).substr(0, bytes.size());
      }
      WriteFile(name, bytes);
    }
    ASSERT_LE(TotalBytes(), max_bytes_) << i;
  }
  EXPECT_GT(num_found, 1000);
  for (std::optional<KVBlockStore>& store : stores) {
    if (store) {
      EXPECT_EQ(store->TakeWarning(), "");
    }
  }
}

TEST_F(KVStoreDamageTest, DamagedBlockIsErasedSoThatItCanBeWrittenAgain) {
  std::string damaged = bytes_;
  damaged[4096] = static_cast<char>(damaged[4096] ^ 1);
  WriteFile(name_, damaged);
  {
    KVBlockStore store(Options());
    EXPECT_FALSE(Write(store, 1));
    EXPECT_EQ(Find(store, 1), Found::kNo);
    EXPECT_TRUE(Write(store, 1));
    EXPECT_EQ(Find(store, 1), Found::kYes);
  }
  KVBlockStore store(Options());
  EXPECT_EQ(store.num_blocks(), 3);
  EXPECT_EQ(Find(store, 1), Found::kYes);
  EXPECT_EQ(Segments().size(), 1u);
}

}  // namespace
}  // namespace vllm
