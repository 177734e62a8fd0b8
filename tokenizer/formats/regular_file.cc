#include "tokenizer/formats/regular_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace vllm::tokenizer {
namespace {

void SetError(RegularFile& file, int error_number) {
  file.error_number = error_number;
  file.error = std::strerror(error_number);
}

// Uses O_NONBLOCK because opening a FIFO for reading would wait for a writer.
RegularFile OpenAt(int directory_fd, const std::string& name, int flags) {
  RegularFile file;
  int fd = -1;
  do {
    fd = openat(directory_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    SetError(file, errno);
    // A socket cannot be opened, and O_NOFOLLOW rejects a link. The file type is clearer than the system's message.
    struct stat status {};
    const int at_flags = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
    if ((file.error_number == ENXIO || file.error_number == ELOOP || file.error_number == ENODEV) &&
        fstatat(directory_fd, name.c_str(), &status, at_flags) == 0 && !S_ISREG(status.st_mode)) {
      file.error = "not a regular file (" + FileTypeName(status.st_mode) + ")";
    }
    return file;
  }
  file.fd = UniqueFd(fd);
  if (fstat(fd, &file.status) != 0) {
    SetError(file, errno);
  } else if (!S_ISREG(file.status.st_mode)) {
    file.error = "not a regular file (" + FileTypeName(file.status.st_mode) + ")";
  }
  return file;
}

}  // namespace

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) close(fd_);
}

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) close(fd_);
  fd_ = other.Release();
  return *this;
}

int UniqueFd::Release() { return std::exchange(fd_, -1); }

std::string FileTypeName(mode_t mode) {
  if (S_ISREG(mode)) return "a regular file";
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "a file of unknown type";
}

bool RegularFile::is_missing() const { return error_number == ENOENT || error_number == ENOTDIR; }

bool RegularFile::is_out_of_resources() const {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
}

RegularFile OpenRegularFile(const std::string& path) { return OpenAt(AT_FDCWD, path, 0); }

RegularFile OpenRegularFileAt(int directory_fd, const std::string& name) {
  return OpenAt(directory_fd, name, O_NOFOLLOW);
}

RegularFile ReadRegularFile(const std::string& path, size_t max_bytes, std::string& text) {
  text.clear();
  RegularFile file = OpenRegularFile(path);
  if (!file.ok()) return file;
  const auto size = static_cast<size_t>(file.status.st_size);
  if (size > max_bytes) {
    file.error = "too large (" + std::to_string(size) + " bytes, limit " + std::to_string(max_bytes) + ")";
    return file;
  }
  // Files in /proc have contents although their size is 0, so read until the end of the file.
  constexpr size_t kChunkBytes = size_t{1} << 16;
  text.resize(size + 1);
  size_t done = 0;
  while (true) {
    if (done == text.size()) text.resize(done + kChunkBytes);
    const ssize_t num_read = read(file.fd.get(), text.data() + done, text.size() - done);
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0) SetError(file, errno);
    if (num_read <= 0) break;
    done += static_cast<size_t>(num_read);
    if (done > max_bytes) {
      file.error = "too large (limit " + std::to_string(max_bytes) + " bytes)";
      break;
    }
  }
  text.resize(file.ok() ? done : 0);
  return file;
}

int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (written == 0) {
      return EIO;
    } else if (errno == EAGAIN) {
      pollfd ready = {fd, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

std::vector<std::string> NamesInDirectory(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), &closedir);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory.get())) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace vllm::tokenizer
