#include "app/hub/pull/blob_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "app/hub/pull/cache_files.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

// Returns true if `path` still names the open file. Some versions of Python's filelock remove the file when they
// release the lock.
bool IsSameFile(int fd, const std::filesystem::path& path) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

}  // namespace

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string text = name.data();
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~'; }, '?');
  return text;
}

bool BlobLock::TryLock() {
  constexpr int kMaxAttempts = 10;
  MakeCacheDirectory(path_.parent_path());
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    tokenizer::UniqueFd fd(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!fd.valid())
      throw ResourceError("cannot open the lock " + Escape(path_.string()) + ": " + std::strerror(errno));
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return false;
      if (errno == EINTR) continue;
      // ENOLCK, ENOTSUP, ENOSYS: the file system has no locks.
      return true;
    }
    if (!IsSameFile(fd.get(), path_)) continue;
    // As huggingface_hub does, so that a group can share a cache. Only the owner may change the mode.
    [[maybe_unused]] const int done = fchmod(fd.get(), 0664);
    const std::string owner = std::to_string(getpid()) + " " + HostName() + "\n";
    if (ftruncate(fd.get(), 0) == 0) tokenizer::WriteAll(fd.get(), owner);
    fd_ = std::move(fd);
    is_real_ = true;
    return true;
  }
  return false;
}

std::string BlobLock::HolderText() const {
  constexpr size_t kMaxOwnerBytes = 512;
  std::string text;
  tokenizer::ReadRegularFile(path_.string(), kMaxOwnerBytes, text);
  text = text.substr(0, text.find('\n'));
  const size_t space = text.find(' ');
  if (space == std::string::npos || text.find_first_not_of("0123456789") != space) return "another program";
  return "process " + text.substr(0, space) + " on " + Escape(text.substr(space + 1), 100);
}

void BlobLock::Unlock() {
  if (is_real_) [[maybe_unused]]
    const int done = ftruncate(fd_.get(), 0);
  fd_ = tokenizer::UniqueFd();
  is_real_ = false;
}

}  // namespace vllm::app
