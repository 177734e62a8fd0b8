// Helpers for the tests of the KV block store: blocks with keys and payloads that follow from a number, and a fixture
// with a private directory. One thread per test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/kv_store/kv_block_store.h"
#include "tests/support/temp_directory.h"

namespace vllm {

// Block `number` of a chain of blocks; its parent is block number - 1.
class TestBlock {
 public:
  explicit TestBlock(int32_t number, int64_t block_size = 4) : number_(number) {
    for (int64_t i = 0; i < block_size; ++i) token_ids_.push_back(number * 1000 + static_cast<int32_t>(i));
    const std::vector<int32_t> parent = {number - 1};
    parent_hash_ = HashBlockTokens(kNoneHash, parent, "");
    hash_ = HashBlockTokens(kNoneHash, std::vector<int32_t>{number}, "");
  }

  const BlockHash& hash() const { return hash_; }
  KVBlockKey key() const { return {hash_, parent_hash_, token_ids_, "salt"}; }
  std::vector<std::byte> Payload(int64_t bytes) const {
    std::vector<std::byte> payload(static_cast<size_t>(bytes));
    uint64_t state = static_cast<uint64_t>(number_);
    for (std::byte& byte : payload) byte = static_cast<std::byte>(MixBits(state += kSplitMixGamma) >> 56);
    return payload;
  }

 private:
  int32_t number_;
  std::vector<int32_t> token_ids_;
  BlockHash hash_;
  BlockHash parent_hash_;
};

enum class Found { kNo, kYes, kWrong };

inline Found Find(KVBlockStore& store, const TestBlock& block, int64_t payload_bytes) {
  std::vector<std::byte> payload(static_cast<size_t>(payload_bytes));
  if (!store.Read(block.key(), payload)) return Found::kNo;
  return payload == block.Payload(payload_bytes) ? Found::kYes : Found::kWrong;
}

class KVStoreTest : public testing::Test {
 protected:
  KVBlockStore::Options Options() const {
    KVBlockStore::Options options;
    options.directory = directory_;
    options.max_bytes = max_bytes_;
    options.identity = "model";
    options.payload_bytes = payload_bytes_;
    options.block_size = 4;
    return options;
  }
  bool Write(KVBlockStore& store, int32_t number) const {
    const TestBlock block(number);
    return store.Write(block.key(), block.Payload(payload_bytes_));
  }
  Found Find(KVBlockStore& store, int32_t number) const { return vllm::Find(store, TestBlock(number), payload_bytes_); }
  // Writes blocks first..last with a new store.
  void WriteRange(int32_t first, int32_t last) const {
    KVBlockStore store(Options());
    for (int32_t number = first; number <= last; ++number) ASSERT_TRUE(Write(store, number)) << number;
  }

  std::string PathOf(const std::string& name) const { return directory_ + "/" + name; }
  // Returns the names of the segment files, sorted.
  std::vector<std::string> Segments() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory_, error)) {
      if (entry.path().extension() == ".kvseg") names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  int64_t TotalBytes() const {
    int64_t total = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
      struct stat status {};
      if (lstat(entry.path().c_str(), &status) == 0) total += status.st_size;
    }
    return total;
  }
  void SetAge(const std::string& name, int minutes) const {
    std::filesystem::last_write_time(PathOf(name),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::minutes(minutes));
  }
  std::string ReadFile(const std::string& name) const {
    std::ifstream file(PathOf(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Writes a file that the store accepts as private.
  void WriteFile(const std::string& name, const std::string& bytes) const {
    // Without O_TRUNC, because ext4 would write the file to disk each time.
    const int fd = open(PathOf(name).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(write(fd, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes.size())), 0);
    close(fd);
  }

  TempDirectory temp_;
  std::string directory_ = temp_.path() + "/cache/vllmcli/kv";
  int64_t payload_bytes_ = 64;
  int64_t max_bytes_ = int64_t{1} << 20;
};

}  // namespace vllm
