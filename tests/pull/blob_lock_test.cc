#include "app/hub/pull/blob_lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

class BlobLockTest : public testing::Test {
 protected:
  TempDirectory directory_;
  std::string path_ = directory_.path() + "/locks/x.lock";
};

TEST_F(BlobLockTest, SecondHolderWaitsAndSeesTheFirst) {
  BlobLock first(path_);
  BlobLock second(path_);
  ASSERT_TRUE(first.TryLock());
  EXPECT_TRUE(first.is_real());
  EXPECT_FALSE(second.TryLock());
  EXPECT_EQ(second.HolderText(), "process " + std::to_string(getpid()) + " on " + HostName());
  first.Unlock();
  EXPECT_TRUE(second.TryLock());
}

TEST_F(BlobLockTest, HolderThatWritesNoNameIsAnotherProgram) {
  BlobLock lock(path_);
  EXPECT_EQ(lock.HolderText(), "another program");
  ASSERT_TRUE(lock.TryLock());
  directory_.Write("locks/x.lock", "x y\n");
  EXPECT_EQ(lock.HolderText(), "another program");
}

TEST_F(BlobLockTest, RemovedFileIsLockedUnderItsNewName) {
  BlobLock first(path_);
  ASSERT_TRUE(first.TryLock());
  unlink(path_.c_str());
  BlobLock second(path_);
  ASSERT_TRUE(second.TryLock());
  BlobLock third(path_);
  EXPECT_FALSE(third.TryLock());
}

}  // namespace
}  // namespace vllm::app
