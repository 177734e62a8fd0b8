// Fuzzes the reader of packed-weight files. The entries of an accepted file must be in order and must not overlap. The
// target first writes the correct file size and header hash, because no fuzzer would guess the hash.
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/config/errors.h"
#include "engine/model_loader/packed_cache/packed_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {
namespace {

constexpr size_t kFixedBytes = 40;
constexpr size_t kHashOffset = 32;
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

template <typename T>
T Read(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// Overwrites the size and the hash in the header with the correct values. Keeps the hash if the header does not fit
// into the file.
void FixSizeAndHash(std::string& bytes) {
  const uint64_t size = bytes.size();
  std::memcpy(bytes.data() + 24, &size, sizeof(size));
  const auto num_entries = Read<uint64_t>(bytes, 16);
  if (num_entries > size) return;
  const uint64_t header_bytes =
      kFixedBytes + Read<uint32_t>(bytes, 12) + 16 * num_entries + 8 * ((size + kPieceBytes - 1) / kPieceBytes);
  if (header_bytes > size) return;
  std::memset(bytes.data() + kHashOffset, 0, 8);
  const uint64_t hash = XXH3_64bits(bytes.data(), header_bytes);
  std::memcpy(bytes.data() + kHashOffset, &hash, sizeof(hash));
}

}  // namespace

void FuzzOne(std::string_view input) {
  std::string bytes(input);
  if (bytes.size() >= kFixedBytes) FixSizeAndHash(bytes);
  const int fd = memfd_create("packed", MFD_CLOEXEC);
  Require(fd >= 0 && write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
          "memfd_create and write succeed");
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  try {
    const PackedFile file(path, "fuzz", [](int64_t count, const std::function<void(int64_t i)>& f) {
      for (int64_t i = 0; i < count; ++i) f(i);
    });
    const std::byte* end = nullptr;
    for (const PackedEntry& entry : file.entries()) {
      Require(end == nullptr || entry.data.data() >= end, "entries are in order and do not overlap");
      end = entry.data.data() + entry.data.size();
    }
  } catch (const ModelError&) {
  }
  close(fd);
}

}  // namespace vllm
