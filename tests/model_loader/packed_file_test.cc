// Tests files of packed weights: entries survive a round trip, and truncated or modified files are rejected.
#include "engine/model_loader/packed_cache/packed_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/config/errors.h"
#include "kernels/matrix/aligned_buffer.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

constexpr const char* kDescription = "packed weights\nof a test\n";

void Sequentially(int64_t count, const std::function<void(int64_t i)>& f) {
  for (int64_t i = 0; i < count; ++i) f(i);
}

std::vector<std::byte> Bytes(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

class PackedFileTest : public testing::Test {
 protected:
  // Writes a file that has entries of these sizes with random contents.
  void Write(const std::vector<size_t>& sizes) {
    data_.clear();
    std::vector<PackedEntry> entries;
    for (const size_t size : sizes) data_.push_back(Bytes(size, static_cast<unsigned>(data_.size()) + 1));
    for (size_t i = 0; i < data_.size(); ++i) entries.push_back({100 + i, data_[i]});
    const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    WritePackedFile(fd, path_, kDescription, entries, Sequentially);
    close(fd);
    expected_bytes_ = PackedFileBytes(kDescription, entries);
  }
  std::string Contents() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string Rejection(std::string_view description = kDescription) const {
    return MessageOf<ModelError>([&] { PackedFile file(path_, description, Sequentially); });
  }
  std::string RejectionOf(const std::string& contents) const {
    directory_.Write("x.packed", contents);
    return Rejection();
  }
  // Recomputes header_hash, so that a file with changed numbers passes the header checksum.
  static std::string WithNewHash(std::string contents, size_t header_bytes) {
    std::memset(contents.data() + 32, 0, 8);
    const uint64_t hash = XXH3_64bits(contents.data(), header_bytes);
    std::memcpy(contents.data() + 32, &hash, 8);
    return contents;
  }

  TempDirectory directory_;
  std::string path_ = directory_.path() + "/x.packed";
  std::vector<std::vector<std::byte>> data_;
  int64_t expected_bytes_ = 0;
};

// Pages of aligned entries are written past the page cache, if the file system can; all others are not.
TEST_F(PackedFileTest, AlignmentOfEntriesDoesNotChangeTheFile) {
  const auto contents_with = [&](size_t shift) {
    std::vector<kernels::AlignedBuffer> buffers;
    std::vector<PackedEntry> entries;
    for (const size_t size : {(size_t{9} << 20) + 5, size_t{100}, size_t{8192}, size_t{4097}}) {
      const std::vector<std::byte> bytes = Bytes(size, static_cast<unsigned>(size));
      std::byte* const data = buffers.emplace_back(size + shift).as<std::byte>() + shift;
      std::memcpy(data, bytes.data(), size);
      entries.push_back({size, {data, size}});
    }
    const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_GE(fd, 0);
    WritePackedFile(fd, path_, kDescription, entries, Sequentially);
    close(fd);
    return Contents();
  };
  const std::string aligned = contents_with(0);
  EXPECT_TRUE(aligned == contents_with(1));
  EXPECT_EQ(RejectionOf(aligned), "");
}

TEST_F(PackedFileTest, EntriesSurviveARoundTrip) {
  const std::vector<std::vector<size_t>> cases = {
      {1}, {4096}, {4097, 3, 8192}, {(size_t{9} << 20) + 5, 100, size_t{4} << 20}, std::vector<size_t>(3000, 10)};
  for (const std::vector<size_t>& sizes : cases) {
    Write(sizes);
    const PackedFile file(path_, kDescription, Sequentially);
    EXPECT_EQ(file.size_bytes(), expected_bytes_);
    ASSERT_EQ(file.entries().size(), sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      const PackedEntry& entry = file.entries()[i];
      EXPECT_EQ(entry.name_hash, 100 + i);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(entry.data.data()) % 4096, 0u);
      ASSERT_EQ(entry.data.size(), sizes[i]);
      EXPECT_EQ(std::memcmp(entry.data.data(), data_[i].data(), sizes[i]), 0);
    }
  }
}

TEST_F(PackedFileTest, FileOfOtherWeightsIsRejected) {
  Write({100});
  EXPECT_NE(Rejection("packed weights\nof a tesd\n").find("rejected: made from other weights or settings"),
            std::string::npos);
  EXPECT_NE(Rejection("packed weights").find("rejected: made from other weights or settings"), std::string::npos);
}

TEST_F(PackedFileTest, TruncatedOrExtendedFileIsRejected) {
  Write({4096, 100});
  const std::string whole = Contents();
  const size_t header_bytes = 40 + std::strlen(kDescription) + 2 * 16 + 8;
  for (size_t size = 0; size <= header_bytes; ++size) {
    EXPECT_NE(RejectionOf(whole.substr(0, size)).find("rejected: "), std::string::npos) << size;
  }
  for (const size_t size : {size_t{4095}, size_t{4096}, size_t{8191}, size_t{8192}, whole.size() - 1}) {
    EXPECT_NE(RejectionOf(whole.substr(0, size)).find("rejected: "), std::string::npos) << size;
  }
  EXPECT_NE(RejectionOf(whole + "x").find("rejected: "), std::string::npos);
}

TEST_F(PackedFileTest, FlippedBitInTheHeaderOrTheDataIsRejected) {
  Write({4096, 100, (size_t{5} << 20) + 3});
  std::string contents = Contents();
  std::vector<size_t> offsets;
  const size_t header_bytes = 40 + std::strlen(kDescription) + 3 * 16 + 2 * 8;
  for (size_t i = 0; i < header_bytes; ++i) offsets.push_back(i);
  std::mt19937 random(5);
  for (int i = 0; i < 60; ++i) offsets.push_back(4096 + random() % (contents.size() - 4096));
  offsets.push_back(contents.size() - 1);
  for (const size_t offset : offsets) {
    contents[offset] = static_cast<char>(contents[offset] ^ (1 << (offset % 8)));
    EXPECT_NE(RejectionOf(contents).find("rejected: "), std::string::npos) << offset;
    contents[offset] = static_cast<char>(contents[offset] ^ (1 << (offset % 8)));
  }
  EXPECT_EQ(RejectionOf(contents), "");
}

TEST_F(PackedFileTest, ImpossibleNumbersAreRejectedEvenWithAValidHash) {
  Write({4096, 100});
  const std::string whole = Contents();
  const size_t header_bytes = 40 + std::strlen(kDescription) + 2 * 16 + 8;
  ASSERT_EQ(WithNewHash(whole, header_bytes), whole);
  const size_t first_entry = 40 + std::strlen(kDescription);
  std::mt19937_64 random(9);
  // The fields are the layout version, description size, number of entries, file size, and the sizes of both entries.
  for (const auto& [offset, width] :
       {std::pair<size_t, size_t>{8, 4}, {12, 4}, {16, 8}, {24, 8}, {first_entry + 8, 8}, {first_entry + 24, 8}}) {
    for (int round = 0; round < 80; ++round) {
      uint64_t value = random() >> (random() % 64);
      if (round < 3) value = std::array<uint64_t, 3>{0, ~uint64_t{0}, uint64_t{1} << 63}[static_cast<size_t>(round)];
      // If the first entry still ends in the same page, the file is valid.
      if (offset == first_entry + 8 && value > 0 && value <= 4096) continue;
      std::string contents = whole;
      std::memcpy(contents.data() + offset, &value, width);
      if (contents == whole) continue;
      EXPECT_NE(RejectionOf(WithNewHash(contents, header_bytes)).find("rejected: "), std::string::npos)
          << offset << ": " << value;
    }
  }
}

TEST_F(PackedFileTest, DirectoryOrMissingFileIsRejected) {
  EXPECT_NE(Rejection(), "");
  std::filesystem::create_directory(path_);
  EXPECT_NE(Rejection().find("not a regular file"), std::string::npos);
}

TEST_F(PackedFileTest, UnwritableFileIsAnError) {
  const int fd = open("/dev/full", O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  const std::vector<std::byte> bytes(100);
  const std::vector<PackedEntry> entries = {{1, bytes}};
  EXPECT_THROW(WritePackedFile(fd, "/dev/full", kDescription, entries, Sequentially), ResourceError);
  close(fd);
}

}  // namespace
}  // namespace vllm
