#include "engine/model_loader/packed_cache/packed_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "kernels/matrix/packed_layout.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm {
namespace {

constexpr std::array<char, 8> kMagic = {'V', 'L', 'L', 'M', 'P', 'A', 'C', 'K'};
constexpr uint64_t kPageBytes = 4096;
// The unit of hashing and writing. Each piece begins at a multiple of this size, which is a multiple of the usual
// huge-page size, so that a system that caches files in huge pages can also map them with huge pages.
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
constexpr uint64_t kMaxEntries = uint64_t{1} << 24;

struct FixedHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t layout = kernels::kPackedLayoutVersion;
  uint32_t description_bytes = 0;
  uint64_t num_entries = 0;
  uint64_t file_bytes = 0;
  uint64_t header_hash = 0;
};
static_assert(sizeof(FixedHeader) == 40);

struct StoredEntry {
  uint64_t name_hash = 0;
  uint64_t bytes = 0;
};

uint64_t RoundUp(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }
uint64_t NumPieces(uint64_t file_bytes) { return (file_bytes + kPieceBytes - 1) / kPieceBytes; }

// The offsets of the header's parts and of the data, computed from the fixed header. REQUIRES: the numbers in the fixed
// header are within the limits that the reader checks.
struct PackedFileLayout {
  explicit PackedFileLayout(const FixedHeader& header)
      : entries_offset(sizeof(FixedHeader) + header.description_bytes),
        hashes_offset(entries_offset + header.num_entries * sizeof(StoredEntry)),
        header_bytes(hashes_offset + NumPieces(header.file_bytes) * sizeof(uint64_t)),
        data_offset(RoundUp(header_bytes, kPageBytes)) {}

  uint64_t entries_offset;
  uint64_t hashes_offset;
  uint64_t header_bytes;
  uint64_t data_offset;
};

// Returns the header of a file with these entries. The header's size depends on the number of pieces, which depends on
// the file's size and therefore on the header's size. Iterates until the sizes are consistent.
FixedHeader MakeHeader(std::string_view description, std::span<const PackedEntry> entries) {
  FixedHeader header;
  header.description_bytes = static_cast<uint32_t>(description.size());
  header.num_entries = entries.size();
  while (true) {
    uint64_t end = PackedFileLayout(header).data_offset;
    for (const PackedEntry& entry : entries) end = RoundUp(end, kPageBytes) + entry.data.size();
    if (end == header.file_bytes) return header;
    header.file_bytes = end;
  }
}

// Hashes the header with zeros in place of header_hash. REQUIRES: `header` contains at least a FixedHeader.
uint64_t HeaderHash(std::span<const std::byte> header) {
  FixedHeader fixed;
  std::memcpy(&fixed, header.data(), sizeof(fixed));
  fixed.header_hash = 0;
  const std::span<const std::byte> rest = header.subspan(sizeof(fixed));
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, &fixed, sizeof(fixed));
  XXH3_64bits_update(&state, rest.data(), rest.size());
  return XXH3_64bits_digest(&state);
}

// Hashes the data in piece i of the file.
uint64_t PieceHash(std::span<const std::byte> file, uint64_t data_offset, uint64_t i) {
  const uint64_t begin = std::max(i * kPieceBytes, data_offset);
  const uint64_t end = std::min<uint64_t>((i + 1) * kPieceBytes, file.size());
  return begin < end ? XXH3_64bits(file.data() + begin, end - begin) : XXH3_64bits(nullptr, 0);
}

// Calls f(file offset, bytes) for the entries and for the zeros between them, in order.
template <typename F>
void ForEachSpan(uint64_t data_offset, std::span<const PackedEntry> entries, F&& f) {
  static constexpr std::array<std::byte, kPageBytes> kZeros{};
  uint64_t offset = data_offset;
  for (const PackedEntry& entry : entries) {
    const uint64_t begin = RoundUp(offset, kPageBytes);
    if (begin > offset) f(offset, std::span<const std::byte>(kZeros).first(begin - offset));
    f(begin, entry.data);
    offset = begin + entry.data.size();
  }
}

// Writes `bytes` at `offset`. Returns 0 or an errno value.
int WriteAll(int fd, std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return 0;
}

// Writes a file's pages past the page cache, if the file system can: copying gigabytes into the cache takes memory and
// several times as long. Thread-safe.
class PageWriter {
 public:
  explicit PageWriter(int fd)
      : fd_(fd), direct_fd_(open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT)) {}

  // Writes `bytes` at `offset`. Returns 0 or an errno value.
  int Write(std::span<const std::byte> bytes, uint64_t offset) {
    const bool is_aligned = offset % kPageBytes == 0 && reinterpret_cast<uintptr_t>(bytes.data()) % kPageBytes == 0;
    const size_t num_direct = direct_fd_.valid() && is_aligned ? bytes.size() / kPageBytes * kPageBytes : 0;
    const int error = WriteAll(direct_fd_.get(), bytes.first(num_direct), offset);
    if (error == EINVAL) return WriteAll(fd_, bytes, offset);  // the file system wants another alignment
    return error != 0 ? error : WriteAll(fd_, bytes.subspan(num_direct), offset + num_direct);
  }

 private:
  int fd_;
  tokenizer::UniqueFd direct_fd_;
};

}  // namespace

PackedFile::PackedFile(const std::string& path, std::string_view description, const ForEach& for_each)
    : PackedFile(tokenizer::OpenRegularFile(path), path, description, for_each) {}

PackedFile::PackedFile(tokenizer::RegularFile opened, const std::string& path, std::string_view description,
                       const ForEach& for_each)
    : file_(std::move(opened), path) {
  file_.AdviseHugePages();
  const std::span<const std::byte> file = file_.bytes();
  const auto reject = [&](const std::string& why) {
    throw ModelError("packed weights " + Escape(path) + ": rejected: " + why);
  };
  FixedHeader header;
  if (file.size() < sizeof(header)) reject("too short for a header (" + std::to_string(file.size()) + " bytes)");
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.magic != kMagic) reject("not a file of packed weights");
  if (header.layout != kernels::kPackedLayoutVersion)
    reject("unsupported layout version (" + std::to_string(header.layout) + ")");
  if (header.file_bytes != file.size()) reject("file size does not match its header");
  if (header.num_entries > kMaxEntries) reject("too many entries (" + std::to_string(header.num_entries) + ")");
  const PackedFileLayout layout(header);
  if (layout.data_offset > file.size() && header.num_entries > 0) reject("truncated");
  if (layout.header_bytes > file.size()) reject("truncated");
  if (HeaderHash(file.first(layout.header_bytes)) != header.header_hash) reject("header checksum mismatch");
  const std::string_view described(reinterpret_cast<const char*>(file.data()) + sizeof(header),
                                   header.description_bytes);
  if (described != description) reject("made from other weights or settings");

  uint64_t offset = layout.data_offset;
  for (uint64_t i = 0; i < header.num_entries; ++i) {
    StoredEntry entry;
    std::memcpy(&entry, file.data() + layout.entries_offset + i * sizeof(entry), sizeof(entry));
    offset = RoundUp(offset, kPageBytes);
    if (offset > file.size() || entry.bytes > file.size() - offset) reject("an entry extends past the end of the file");
    entries_.push_back({entry.name_hash, file.subspan(offset, entry.bytes)});
    offset += entry.bytes;
  }
  if (header.num_entries > 0 && offset != file.size()) reject("file size does not match its entries");

  std::atomic<bool> is_damaged{false};
  for_each(static_cast<int64_t>(NumPieces(file.size())), [&](int64_t i) {
    uint64_t hash = 0;
    std::memcpy(&hash, file.data() + layout.hashes_offset + static_cast<size_t>(i) * sizeof(hash), sizeof(hash));
    if (PieceHash(file, layout.data_offset, static_cast<uint64_t>(i)) != hash) is_damaged = true;
  });
  if (is_damaged) reject("weight checksum mismatch");
}

int64_t PackedFileBytes(std::string_view description, std::span<const PackedEntry> entries) {
  return static_cast<int64_t>(MakeHeader(description, entries).file_bytes);
}

void WritePackedFile(int fd, const std::string& path, std::string_view description,
                     std::span<const PackedEntry> entries, const ForEach& for_each) {
  const auto check = [&](int error) {
    if (error != 0)
      throw ResourceError("packed weights " + Escape(path) + ": cannot be written: " + std::strerror(error));
  };
  FixedHeader header = MakeHeader(description, entries);
  const PackedFileLayout layout(header);
  // Fails now, instead of halfway through, if the disk is full.
  check(posix_fallocate(fd, 0, static_cast<off_t>(header.file_bytes)));

  std::vector<std::byte> bytes(layout.header_bytes);
  std::atomic<int> error{0};
  PageWriter writer(fd);
  for_each(static_cast<int64_t>(NumPieces(header.file_bytes)), [&](int64_t i) {
    const uint64_t begin = std::max(static_cast<uint64_t>(i) * kPieceBytes, layout.data_offset);
    const uint64_t end = std::min((static_cast<uint64_t>(i) + 1) * kPieceBytes, header.file_bytes);
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    ForEachSpan(layout.data_offset, entries, [&](uint64_t offset, std::span<const std::byte> run) {
      const uint64_t from = std::max(begin, offset);
      const uint64_t to = std::min(end, offset + run.size());
      if (from >= to) return;
      const std::span<const std::byte> part = run.subspan(from - offset, to - from);
      XXH3_64bits_update(&state, part.data(), part.size());
      if (const int failed = writer.Write(part, from); failed != 0) error = failed;
    });
    const uint64_t hash = XXH3_64bits_digest(&state);
    std::memcpy(bytes.data() + layout.hashes_offset + static_cast<size_t>(i) * sizeof(hash), &hash, sizeof(hash));
  });
  check(error);

  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), description.data(), description.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const StoredEntry entry{entries[i].name_hash, entries[i].data.size()};
    std::memcpy(bytes.data() + layout.entries_offset + i * sizeof(entry), &entry, sizeof(entry));
  }
  header.header_hash = HeaderHash(bytes);
  std::memcpy(bytes.data(), &header, sizeof(header));
  check(WriteAll(fd, bytes, 0));
}

}  // namespace vllm
