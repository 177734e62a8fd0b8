#include "engine/kv_store/kv_store_maintenance.h"

#include <sys/file.h>

#include "engine/config/errors.h"
#include "tests/kv_store/kv_store_test_util.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;

class KVStoreMaintenanceTest : public KVStoreTest {
 protected:
  void FlipBit(const std::string& name, size_t offset) const {
    std::string bytes = ReadFile(name);
    bytes.at(offset) = static_cast<char>(bytes.at(offset) ^ 1);
    WriteFile(name, bytes);
  }
};

TEST_F(KVStoreMaintenanceTest, MissingDirectoryIsEmpty) {
  EXPECT_TRUE(ListKVSegments(directory_).empty());
  EXPECT_EQ(ClearKVSegments(directory_).num_segments, 0);
  EXPECT_EQ(VerifyKVSegments(directory_, true).num_segments, 0);
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(KVStoreMaintenanceTest, UntrustedDirectoryIsRejected) {
  WriteRange(1, 1);
  ASSERT_EQ(chmod(directory_.c_str(), 0755), 0);
  EXPECT_THROW(ListKVSegments(directory_), ModelError);
  EXPECT_THROW(ClearKVSegments(directory_), ModelError);
  EXPECT_THROW(VerifyKVSegments(directory_, true), ModelError);
}

TEST_F(KVStoreMaintenanceTest, ListShowsTheSegmentsOfAllModels) {
  WriteRange(1, 3);
  KVBlockStore::Options options = Options();
  options.identity = "other model";
  options.label = "Other\n" + std::string(100, 'x');
  options.payload_bytes = 128;
  KVBlockStore other(options);
  const TestBlock block(1);
  ASSERT_TRUE(other.Write(block.key(), block.Payload(128)));
  std::vector<KVSegmentInfo> segments = ListKVSegments(directory_);
  ASSERT_EQ(segments.size(), 2u);
  if (segments[0].payload_bytes != 64) std::swap(segments[0], segments[1]);
  EXPECT_EQ(segments[0].payload_bytes, 64);
  EXPECT_EQ(segments[0].block_size, 4);
  EXPECT_EQ(segments[0].num_blocks, 3);
  EXPECT_EQ(segments[0].file_bytes, static_cast<int64_t>(fs::file_size(PathOf(segments[0].name))));
  EXPECT_EQ(segments[0].identity.size(), 32u);
  EXPECT_FALSE(segments[0].is_in_use);
  EXPECT_EQ(segments[0].problem, "");
  EXPECT_EQ(segments[0].label, "");
  EXPECT_EQ(segments[1].label, "Other\\x0a" + std::string(58, 'x'));
  EXPECT_EQ(segments[1].num_blocks, 1);
  EXPECT_TRUE(segments[1].is_in_use);
  EXPECT_NE(segments[1].identity, segments[0].identity);
}

TEST_F(KVStoreMaintenanceTest, ListSaysWhyASegmentIsNotUsed) {
  WriteRange(1, 3);
  const std::string name = Segments().at(0);
  FlipBit(name, 20);
  EXPECT_NE(ListKVSegments(directory_).at(0).problem.find("damaged header"), std::string::npos);
  ASSERT_EQ(chmod(PathOf(name).c_str(), 0644), 0);
  EXPECT_NE(ListKVSegments(directory_).at(0).problem.find("mode 0644"), std::string::npos);
  ASSERT_EQ(chmod(PathOf(name).c_str(), 0600), 0);
  WriteFile(name, "short");
  EXPECT_NE(ListKVSegments(directory_).at(0).problem.find("too short for a header"), std::string::npos);
}

TEST_F(KVStoreMaintenanceTest, ClearDeletesAllSegmentsAndNothingElse) {
  WriteRange(1, 3);
  WriteFile("notes.txt", "notes");
  WriteFile("0123456789abcdef.kvseg", std::string(200, 'x'));
  KVBlockStore store(Options());
  ASSERT_TRUE(Write(store, 4));
  const KVClearing clearing = ClearKVSegments(directory_);
  EXPECT_EQ(clearing.num_segments, 2);
  EXPECT_GT(clearing.bytes, 4096);
  EXPECT_TRUE(clearing.problems.empty());
  EXPECT_TRUE(Segments().empty());
  EXPECT_TRUE(fs::exists(PathOf("notes.txt")));
  // The store in use goes to a new segment.
  EXPECT_TRUE(Write(store, 5));
  EXPECT_FALSE(store.Contains(TestBlock(4).hash()));
}

TEST_F(KVStoreMaintenanceTest, ClearDeletesLinksButNotTheirTargets) {
  KVBlockStore{Options()};
  const std::string target = temp_.Write("target", "text");
  fs::create_symlink(target, PathOf("0123456789abcdef.kvseg"));
  EXPECT_EQ(ClearKVSegments(directory_).num_segments, 1);
  EXPECT_TRUE(fs::exists(target));
  EXPECT_TRUE(Segments().empty());
}

TEST_F(KVStoreMaintenanceTest, VerifyFindsNoFaultInAnIntactStore) {
  WriteRange(1, 3);
  const KVVerification verification = VerifyKVSegments(directory_, false);
  EXPECT_EQ(verification.num_segments, 1);
  EXPECT_EQ(verification.num_blocks, 3);
  EXPECT_EQ(verification.num_damaged_blocks, 0);
  EXPECT_TRUE(verification.problems.empty());
}

TEST_F(KVStoreMaintenanceTest, VerifyReportsDamagedHeadsAndPayloadsAndErasesThemOnRequest) {
  WriteRange(1, 4);
  const std::string name = Segments().at(0);
  const size_t payloads = ReadFile(name).size() - 4 * 64;
  FlipBit(name, 128 + 30);
  FlipBit(name, payloads + 2 * 64);
  for (const bool remove_damaged : {false, true}) {
    const KVVerification verification = VerifyKVSegments(directory_, remove_damaged);
    EXPECT_EQ(verification.num_blocks, 2);
    EXPECT_EQ(verification.num_damaged_blocks, 2);
    ASSERT_EQ(verification.problems.size(), 1u);
    EXPECT_NE(verification.problems[0].find("2 of 4 blocks are damaged"), std::string::npos);
    EXPECT_EQ(verification.num_removed, remove_damaged ? 2 : 0);
  }
  EXPECT_EQ(VerifyKVSegments(directory_, false).num_damaged_blocks, 0);
  KVBlockStore store(Options());
  EXPECT_EQ(store.num_blocks(), 2);
}

TEST_F(KVStoreMaintenanceTest, VerifyDeletesSegmentsWithADamagedHeaderOnRequest) {
  WriteRange(1, 3);
  FlipBit(Segments().at(0), 9);
  EXPECT_EQ(VerifyKVSegments(directory_, false).problems.size(), 1u);
  EXPECT_EQ(Segments().size(), 1u);
  EXPECT_EQ(VerifyKVSegments(directory_, true).num_removed, 1);
  EXPECT_TRUE(Segments().empty());
}

TEST_F(KVStoreMaintenanceTest, VerifyDoesNotDeleteADamagedSegmentInUse) {
  WriteRange(1, 3);
  const std::string name = Segments().at(0);
  FlipBit(name, 9);
  const tokenizer::UniqueFd fd(open(PathOf(name).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(fd.get(), LOCK_EX), 0);
  EXPECT_EQ(VerifyKVSegments(directory_, true).num_removed, 0);
  EXPECT_EQ(Segments().size(), 1u);
}

}  // namespace
}  // namespace vllm
