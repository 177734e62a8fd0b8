#include "app/batch/job/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

bool IsSameFile(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

bool IsUnsupported(int error) { return error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL; }

}  // namespace

void OutputFile::Fail(const std::string& action, int error) const {
  throw ResourceError(action + " " + path_ + ": " + std::strerror(error));
}

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  while (true) {
    fd_ = tokenizer::UniqueFd(open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666));
    if (!fd_.valid()) Fail("opening batch output", errno);
    struct stat status {};
    if (fstat(fd_.get(), &status) != 0) Fail("opening batch output", errno);
    if (!S_ISREG(status.st_mode)) throw ConfigError("batch output " + path_ + ": is not a regular file");
    if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) throw ConfigError("batch output " + path_ + ": another process is writing to it");
      if (!IsUnsupported(errno)) Fail("locking batch output", errno);
      PrintWarning("batch output " + path_ +
                   ": this file system has no locks; make sure that no other job writes to the file");
    }
    // A job that has just ended may have replaced the file after open().
    struct stat named {};
    if (stat(path_.c_str(), &named) == 0 && IsSameFile(named, status)) {
      size_ = status.st_size;
      return;
    }
  }
}

void OutputFile::Append(std::string_view bytes) {
  const int64_t start = size_;
  is_dirty_ = true;
  while (!bytes.empty()) {
    const ssize_t written = write(fd_.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
      size_ += written;
    } else if (errno != EINTR) {
      const int error = errno;
      // If the file cannot be shortened either, the next start removes the partial record.
      if (size_ > start && ftruncate(fd_.get(), start) == 0) size_ = start;
      Fail("writing", error);
    }
  }
}

void OutputFile::Cut(int64_t size) {
  if (size == size_) return;
  if (ftruncate(fd_.get(), size) != 0) Fail("shortening", errno);
  size_ = size;
  is_dirty_ = true;
}

void OutputFile::Sync() {
  if (!is_dirty_) return;
  if (fdatasync(fd_.get()) != 0 && errno != EINVAL && errno != EROFS) Fail("flushing", errno);
  is_dirty_ = false;
}

void OutputFile::CheckExists() const {
  struct stat status {};
  struct stat named {};
  if (fstat(fd_.get(), &status) != 0) Fail("checking", errno);
  if (stat(path_.c_str(), &named) != 0) {
    const int error = errno;
    throw ResourceError("batch output " + path_ + ": the file is no longer there (" + std::strerror(error) + ")");
  }
  if (!IsSameFile(named, status)) throw ResourceError("batch output " + path_ + ": another file has replaced it");
}

void OutputFile::RenameTo(const std::string& path) {
  if (rename(path_.c_str(), path.c_str()) != 0) Fail("renaming", errno);
  path_ = path;
  SyncDirectoryOf(path);
}

bool IsLocked(const std::string& path) {
  const tokenizer::RegularFile file = tokenizer::OpenRegularFile(path);
  if (!file.ok()) return false;
  if (flock(file.fd.get(), LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  flock(file.fd.get(), LOCK_UN);
  return false;
}

void SyncDirectoryOf(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const tokenizer::UniqueFd fd(open(directory.empty() ? "." : directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) [[maybe_unused]]
    const int done = fsync(fd.get());
}

}  // namespace vllm::app
