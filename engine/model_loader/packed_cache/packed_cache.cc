#include "engine/model_loader/packed_cache/packed_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr char kContents[] = "packed weights";
constexpr std::string_view kSuffix = ".packed";
// Marks a file that is being written. The writer keeps the file locked, so an unlocked file was usually left by a
// killed writer.
constexpr std::string_view kUnfinished = ".unfinished-";

struct CachedFile {
  std::string name;
  int64_t bytes = 0;
  timespec used{};
};

// Deletes an unfinished file if no process is writing it. Returns false if one is, or if the file cannot be opened.
bool DeleteAbandoned(int directory_fd, const std::string& name) {
  const tokenizer::UniqueFd fd(openat(directory_fd, name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd.valid() || flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return false;
  unlinkat(directory_fd, name.c_str(), 0);
  return true;
}

// A temporary file that is locked while it is written. The destructor deletes it unless KeepAs has renamed it.
class UnfinishedFile {
 public:
  UnfinishedFile(const PrivateDirectory& directory, const std::string& prefix) : directory_(directory) {
    // Before the file is locked, another process may delete it as abandoned. In that case, create a new one.
    do {
      Create(prefix);
      flock(fd_.get(), LOCK_EX);
    } while (IsUnlinked());
  }
  ~UnfinishedFile() {
    if (!is_kept_) unlinkat(directory_.fd(), name_.c_str(), 0);
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  int fd() const { return fd_.get(); }
  std::string path() const { return directory_.PathOf(name_); }
  void KeepAs(const std::string& name) {
    if (renameat(directory_.fd(), name_.c_str(), directory_.fd(), name.c_str()) != 0) Fail("cannot be renamed");
    is_kept_ = true;
  }

 private:
  void Create(const std::string& prefix) {
    std::random_device random;
    do {
      name_ = prefix + std::to_string(random());
      fd_ = tokenizer::UniqueFd(
          openat(directory_.fd(), name_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    } while (!fd_.valid() && (errno == EEXIST || errno == EINTR));
    if (!fd_.valid()) Fail("cannot be created");
  }
  bool IsUnlinked() const {
    struct stat status;
    return fstat(fd_.get(), &status) == 0 && status.st_nlink == 0;
  }
  [[noreturn]] void Fail(const char* why) const {
    throw ResourceError("packed weights " + Escape(path()) + ": " + why + ": " + std::strerror(errno));
  }

  const PrivateDirectory& directory_;
  std::string name_;
  tokenizer::UniqueFd fd_;
  bool is_kept_ = false;
};

std::string NameOf(const std::string& key) { return key + std::string(kSuffix); }

}  // namespace

std::string PackedCache::PathOf(const std::string& key) const { return directory_ + "/" + NameOf(key); }

std::optional<tokenizer::RegularFile> PackedCache::OpenFile(const std::string& key) const {
  const std::optional<PrivateDirectory> directory = PrivateDirectory::Open(directory_, kContents, OtherUsers::kMayRead);
  if (!directory) return std::nullopt;
  std::optional<tokenizer::RegularFile> file = directory->OpenFile(NameOf(key));
  if (file) futimens(file->fd.get(), nullptr);
  return file;
}

void PackedCache::Put(const std::string& key, int64_t bytes,
                      const std::function<void(int fd, const std::string& path)>& write) const {
  // A new directory is private to the user: the cache reveals the contents of a model.
  const PrivateDirectory directory = PrivateDirectory::OpenOrCreate(directory_, kContents, OtherUsers::kMayRead);
  EvictFor(directory, bytes, NameOf(key));
  UnfinishedFile file(directory, key + std::string(kUnfinished));
  write(file.fd(), file.path());
  file.KeepAs(NameOf(key));
}

void PackedCache::EvictFor(const PrivateDirectory& directory, int64_t bytes, const std::string& replaced) const {
  std::vector<CachedFile> files;
  int64_t total = bytes;
  for (const std::string& name : directory.Names()) {
    const bool is_unfinished = name.find(kUnfinished) != std::string::npos;
    if (name == replaced || (!is_unfinished && !name.ends_with(kSuffix))) continue;
    struct stat status {};
    if (fstatat(directory.fd(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    if (is_unfinished && DeleteAbandoned(directory.fd(), name)) continue;
    total += status.st_size;
    if (!is_unfinished) files.push_back({name, status.st_size, status.st_mtim});
  }
  std::sort(files.begin(), files.end(), [](const CachedFile& a, const CachedFile& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const CachedFile& file : files) {
    if (total <= max_bytes_) return;
    if (unlinkat(directory.fd(), file.name.c_str(), 0) == 0) total -= file.bytes;
  }
}

}  // namespace vllm
