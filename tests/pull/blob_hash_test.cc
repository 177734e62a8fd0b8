#include "app/hub/pull/blob_hash.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

// The expected values are those of sha256sum and git hash-object.

std::string HashOf(size_t num_digits, std::string_view bytes) {
  BlobHash hash(std::string(num_digits, '0'), static_cast<int64_t>(bytes.size()));
  for (const char byte : bytes) hash.Add({&byte, 1});
  EXPECT_EQ(hash.num_bytes(), static_cast<int64_t>(bytes.size()));
  return hash.Finish();
}

TEST(BlobHashTest, SixtyFourDigitsAreSha256) {
  EXPECT_EQ(HashOf(64, ""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(HashOf(64, "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(BlobHashTest, FortyDigitsAreTheBlobHashOfGit) {
  EXPECT_EQ(HashOf(40, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(HashOf(40, "{}"), "9e26dfeeb6e641a33dae4961196235bdb965b21b");
}

}  // namespace
}  // namespace vllm::app
