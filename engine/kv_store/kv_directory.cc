#include "engine/kv_store/kv_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <random>
#include <thread>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr char kContents[] = "KV disk cache";
constexpr char kLockName[] = "lock";
constexpr std::string_view kSuffix = ".kvseg";
// Small enough that deleting a segment loses little, and large enough that a cache of 100 GB has only 1600 files.
constexpr int64_t kMaxSegmentBytes = int64_t{64} << 20;
// A segment has at most this part of the whole cache, so that a small cache also has a useful order of use.
constexpr int64_t kMinSegments = 16;
constexpr size_t kNumDigits = 16;
constexpr std::string_view kDigits = "0123456789abcdef";

uint64_t RandomId() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// Sizes of files may be any value, because a file may be sparse.
int64_t AddSaturated(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

std::string SegmentName(uint64_t id) {
  std::string name(kNumDigits, '0');
  for (size_t i = 0; i < kNumDigits; ++i) name[i] = kDigits[id >> (4 * (kNumDigits - 1 - i)) & 15];
  return name + std::string(kSuffix);
}

}  // namespace

int64_t KVDirectory::SegmentBytes(int64_t max_bytes) {
  return std::clamp<int64_t>(max_bytes / kMinSegments, 0, kMaxSegmentBytes);
}

KVDirectory::KVDirectory(const std::string& path)
    : directory_(PrivateDirectory::OpenOrCreate(path, kContents, OtherUsers::kHaveNoAccess)), path_(path) {}

std::optional<KVDirectory> KVDirectory::Open(const std::string& path) {
  std::optional<PrivateDirectory> directory = PrivateDirectory::Open(path, kContents, OtherUsers::kHaveNoAccess);
  if (!directory) return std::nullopt;
  return KVDirectory(std::move(*directory), path);
}

bool KVDirectory::IsSegmentName(std::string_view name) {
  return name.size() == kNumDigits + kSuffix.size() && name.ends_with(kSuffix) &&
         name.find_first_not_of(kDigits) == kNumDigits;
}

std::vector<KVDirectory::File> KVDirectory::List() const {
  std::vector<File> files;
  for (std::string& name : directory_.Names()) {
    struct stat status {};
    if (fstatat(directory_.fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const bool is_segment = IsSegmentName(name);
    files.push_back({std::move(name), status.st_size, status.st_mtim, is_segment, S_ISREG(status.st_mode)});
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.name < b.name; });
  return files;
}

KVSegmentFile KVDirectory::OpenSegment(const std::string& name) const {
  std::optional<tokenizer::RegularFile> file = directory_.OpenFile(name);
  if (!file) return {};
  return KVSegmentFile(std::move(file->fd));
}

KVSegmentFile KVDirectory::OpenSegmentForUpdate(const std::string& name) const {
  tokenizer::RegularFile file = directory_.OpenFileForUpdate(name, 0);
  if (!file.ok()) return {};
  return KVSegmentFile(std::move(file.fd));
}

int KVDirectory::CreateSegment(KVSegmentHeader header, std::string& name, KVSegmentFile& file) const {
  tokenizer::RegularFile created;
  do {
    header.id = RandomId();
    name = SegmentName(header.id);
    created = directory_.OpenFileForUpdate(name, O_CREAT | O_EXCL);
  } while (created.error_number == EEXIST);
  if (!created.ok()) return created.error_number;
  int error = KVSegmentFile::WriteHeader(created.fd.get(), header);
  if (error == 0) {
    file = KVSegmentFile(std::move(created.fd));
    if (file.state() != KVSegmentFile::State::kValid) error = EIO;
    // Waits only for processes that test at this moment whether the new segment is in use.
    while (error == 0 && flock(file.fd(), LOCK_EX) != 0) error = errno == EINTR ? 0 : errno;
  }
  if (error != 0) Delete(name);
  return error;
}

tokenizer::UniqueFd KVDirectory::Lock(std::string& error) const {
  constexpr int kNumAttempts = 50;
  constexpr std::chrono::milliseconds kPause{10};
  tokenizer::RegularFile file;
  try {
    file = directory_.OpenFileForUpdate(kLockName, O_CREAT);
  } catch (const ModelError& untrusted) {
    error = untrusted.what();
    return {};
  }
  if (!file.ok()) {
    error = Escape(directory_.PathOf(kLockName)) + " cannot be opened: " + file.error;
    return {};
  }
  // Does not wait without a limit, because the other process may be stopped.
  for (int attempt = 0; attempt < kNumAttempts; ++attempt) {
    if (flock(file.fd.get(), LOCK_EX | LOCK_NB) == 0) return std::move(file.fd);
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      error = Escape(directory_.PathOf(kLockName)) + " cannot be locked: " + std::strerror(errno);
      return {};
    }
    std::this_thread::sleep_for(kPause);
  }
  return {};
}

bool KVDirectory::IsInUse(const std::string& name) const {
  const tokenizer::RegularFile file = tokenizer::OpenRegularFileAt(directory_.fd(), name);
  return file.ok() && flock(file.fd.get(), LOCK_SH | LOCK_NB) != 0;
}

KVDirectory::Eviction KVDirectory::MakeRoom(int64_t bytes, int64_t max_bytes) const {
  std::vector<File> evictable;
  int64_t total = 0;
  for (File& file : List()) {
    const bool is_segment = file.is_segment && file.is_regular;
    const bool is_in_use = is_segment && IsInUse(file.name);
    // The size in the list may be from before its writer wrote the last blocks and closed it.
    struct stat status {};
    if (is_segment && !is_in_use && fstatat(directory_.fd(), file.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
      file.bytes = status.st_size;
    }
    // Its writer was killed before it wrote the header.
    const bool is_useless = is_segment && !is_in_use && file.bytes < static_cast<int64_t>(kKVSegmentHeaderBytes);
    if (is_useless && Delete(file.name)) continue;
    total = AddSaturated(total, file.bytes);
    if (!is_segment) continue;
    if (!is_in_use) {
      evictable.push_back(std::move(file));
      continue;
    }
    // Reserve the space that the other writer may still use. It writes the header before it unlocks the directory.
    // If the header was damaged later, assume that the writer has the same limit.
    int64_t full = SegmentBytes(max_bytes);
    try {
      const KVSegmentFile segment = OpenSegment(file.name);
      if (segment.state() == KVSegmentFile::State::kValid) full = static_cast<int64_t>(segment.header().FileBytes());
    } catch (const ModelError&) {
    }
    if (full > file.bytes) total = AddSaturated(total, full - file.bytes);
  }
  std::sort(evictable.begin(), evictable.end(), [](const File& a, const File& b) {
    return std::pair(a.modified.tv_sec, a.modified.tv_nsec) < std::pair(b.modified.tv_sec, b.modified.tv_nsec);
  });
  Eviction eviction;
  for (File& file : evictable) {
    if (total <= max_bytes - bytes) break;
    if (!Delete(file.name)) continue;
    total -= file.bytes;
    eviction.bytes += file.bytes;
    eviction.names.push_back(std::move(file.name));
  }
  eviction.has_room = total <= max_bytes - bytes;
  return eviction;
}

bool KVDirectory::Delete(const std::string& name) const { return unlinkat(directory_.fd(), name.c_str(), 0) == 0; }

}  // namespace vllm
