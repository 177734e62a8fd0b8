#include "engine/model_loader/packed_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/escape.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".packed";
// Of a file that is being written. Its writer holds a lock on it, so that what a killed one left behind is known.
constexpr std::string_view kUnfinished = ".unfinished-";

struct KeptFile {
  fs::path path;
  int64_t bytes = 0;
  fs::file_time_type used;
};

// Deletes what nobody writes any more; returns whether it did.
bool DeleteAbandoned(const fs::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  const bool is_abandoned = flock(fd, LOCK_EX | LOCK_NB) == 0;
  if (is_abandoned) unlink(path.c_str());
  close(fd);
  return is_abandoned;
}

// A file that is locked while it is written and gone unless it is kept.
class UnfinishedFile {
 public:
  explicit UnfinishedFile(const std::string& name) {
    // Before it was locked somebody may have taken it for abandoned.
    do {
      if (fd_ >= 0) close(fd_);
      path_ = name + "XXXXXX";
      fd_ = mkostemp(path_.data(), O_CLOEXEC);
      if (fd_ < 0) Fail("cannot be created");
      flock(fd_, LOCK_EX);
    } while (IsUnlinked());
  }
  ~UnfinishedFile() {
    if (!is_kept_) unlink(path_.c_str());
    close(fd_);
  }
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  void KeepAs(const std::string& path) {
    if (rename(path_.c_str(), path.c_str()) != 0) Fail("cannot be renamed");
    is_kept_ = true;
  }

 private:
  bool IsUnlinked() const {
    struct stat status;
    return fstat(fd_, &status) == 0 && status.st_nlink == 0;
  }
  [[noreturn]] void Fail(const char* why) const {
    throw ResourceError("packed weights " + Escape(path_) + ": " + why + ": " + std::strerror(errno));
  }

  std::string path_;
  int fd_ = -1;
  bool is_kept_ = false;
};

}  // namespace

std::string PackedCache::PathOf(const std::string& key) const { return folder_ + "/" + key + std::string(kEnding); }

void PackedCache::Touch(const std::string& path) const { utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

void PackedCache::Put(const std::string& key, int64_t bytes,
                      const std::function<void(int fd, const std::string& path)>& write) const {
  std::error_code error;
  fs::create_directories(fs::path(folder_).parent_path(), error);
  // What is in a model is nobody else's business.
  if (mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    throw ResourceError("packed weights " + Escape(folder_) + ": cannot be created: " + std::strerror(errno));
  }
  MakeRoom(bytes, PathOf(key));
  UnfinishedFile file(folder_ + "/" + key + std::string(kUnfinished));
  write(file.fd(), file.path());
  file.KeepAs(PathOf(key));
}

void PackedCache::MakeRoom(int64_t bytes, const std::string& replaced) const {
  std::error_code error;
  std::vector<KeptFile> files;
  int64_t total = bytes;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const std::string name = it->path().filename().string();
    const bool is_unfinished = name.find(kUnfinished) != std::string::npos;
    if (!is_unfinished && !name.ends_with(kEnding)) continue;
    if (it->symlink_status(ignored).type() != fs::file_type::regular || it->path() == replaced) continue;
    if (is_unfinished && DeleteAbandoned(it->path())) continue;
    const auto size = static_cast<int64_t>(it->file_size(ignored));
    const fs::file_time_type used = it->last_write_time(ignored);
    if (ignored) continue;
    total += size;
    if (!is_unfinished) files.push_back({it->path(), size, used});
  }
  std::sort(files.begin(), files.end(), [](const KeptFile& a, const KeptFile& b) { return a.used < b.used; });
  for (const KeptFile& file : files) {
    if (total <= max_bytes_) return;
    if (unlink(file.path.c_str()) == 0) total -= file.bytes;
  }
}

}  // namespace vllm
