#include "app/batch/batch_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

bool IsSameFile(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

void RejectInput(const std::string& path, const struct stat& status, int input_fd) {
  struct stat input {};
  if (S_ISREG(status.st_mode) && fstat(input_fd, &input) == 0 && IsSameFile(input, status)) {
    throw ConfigError("batch output " + path + ": is the input file");
  }
}

}  // namespace

void CheckBatchOutput(const std::string& path, bool overwrite, int input_fd) {
  struct stat status {};
  if (path.empty() || stat(path.c_str(), &status) != 0) return;
  RejectInput(path, status, input_fd);
  if (S_ISDIR(status.st_mode)) throw ConfigError("batch output " + path + ": is a directory");
  if (S_ISREG(status.st_mode) && !overwrite) {
    throw ConfigError("batch output " + path + ": exists; --overwrite replaces it");
  }
}

BatchOutput::BatchOutput(const std::string& path, bool overwrite, int input_fd, bool ordered) : ordered_(ordered) {
  if (path.empty()) return;
  CheckBatchOutput(path, overwrite, input_fd);
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666);
  if (fd_ < 0) throw ResourceError("batch output " + path + ": " + std::strerror(errno));
  struct stat status {};
  if (fstat(fd_, &status) == 0 && S_ISREG(status.st_mode)) {
    // Truncate only after locking, because another process may be writing to the file.
    const bool is_locked = flock(fd_, LOCK_EX | LOCK_NB) == 0;
    const bool is_used = !is_locked && errno == EWOULDBLOCK;
    const bool is_full = status.st_size > 0 && !overwrite;
    if (is_used || (is_locked && is_full)) {
      close(fd_);
      throw ConfigError("batch output " + path + (is_used ? ": another process is writing to it" : ": exists"));
    }
    if (!is_locked || ftruncate(fd_, 0) != 0) {
      const int error = errno;
      close(fd_);
      throw ResourceError("batch output " + path + ": " + std::strerror(error));
    }
  }
  file_ = std::make_unique<OutputStream>(fd_, path);
}

BatchOutput::~BatchOutput() {
  if (fd_ >= 0) close(fd_);
}

void BatchOutput::Put(int64_t row_index, const SafeText& record) {
  if (!ordered_) {
    WriteRecord(record);
    return;
  }
  held_.emplace(row_index, record);
  held_bytes_ += static_cast<int64_t>(record.view().size());
  WriteHeld();
}

void BatchOutput::Skip(int64_t row_index) {
  if (!ordered_) return;
  held_.emplace(row_index, std::nullopt);
  WriteHeld();
}

void BatchOutput::WriteHeld() {
  while (!held_.empty() && held_.begin()->first == next_index_) {
    if (const std::optional<SafeText>& record = held_.begin()->second) {
      WriteRecord(*record);
      held_bytes_ -= static_cast<int64_t>(record->view().size());
    }
    held_.erase(held_.begin());
    ++next_index_;
  }
}

void BatchOutput::WriteRecord(const SafeText& record) {
  if (file_ == nullptr) {
    StandardOutput().WriteLine(record);
  } else {
    const off_t start = lseek(fd_, 0, SEEK_CUR);
    try {
      file_->WriteLine(record);
    } catch (const ResourceError&) {
      // Remove the partial line, so that the file contains only whole lines. Pipes and devices cannot be truncated.
      if (start >= 0) [[maybe_unused]]
        const int cut = ftruncate(fd_, start);
      throw;
    }
  }
}

}  // namespace vllm::app
