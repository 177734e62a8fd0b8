#include "engine/files/private_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {

void PrivateDirectory::Reject(const std::string& path, const std::string& why) const {
  throw ModelError(what_ + " " + Escape(path) + ": not used: " + why);
}

void PrivateDirectory::CheckOwnerAndMode(const struct stat& status, const std::string& path, const char* remedy) const {
  if (status.st_uid != geteuid()) {
    Reject(path, "belongs to another user (uid " + std::to_string(status.st_uid) + ")");
  }
  const bool may_read = other_users_ == OtherUsers::kMayRead;
  if ((status.st_mode & (may_read ? S_IWGRP | S_IWOTH : S_IRWXG | S_IRWXO)) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777u);
    Reject(path, std::string(may_read ? "writable" : "accessible") + " by group or others (mode " + mode.data() + ")" +
                     (remedy[0] == '\0' ? "" : "; ") + remedy);
  }
}

std::optional<PrivateDirectory> PrivateDirectory::Open(const std::string& path, const std::string& what,
                                                       OtherUsers other_users) {
  PrivateDirectory directory(tokenizer::UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)),
                             path, what, other_users);
  struct stat status {};
  if (!directory.fd_.valid()) {
    const int error = errno;
    if (lstat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
    if ((error == ENOTDIR || error == ELOOP) && !S_ISDIR(status.st_mode)) {
      directory.Reject(path, "not a directory (" + tokenizer::FileTypeName(status.st_mode) + ")");
    }
    directory.Reject(path, std::strerror(error));
  }
  if (fstat(directory.fd(), &status) != 0) directory.Reject(path, std::strerror(errno));
  directory.CheckOwnerAndMode(status, path, "run chmod 700 on it");
  return directory;
}

PrivateDirectory PrivateDirectory::OpenOrCreate(const std::string& path, const std::string& what,
                                                OtherUsers other_users) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  const bool is_made = mkdir(path.c_str(), 0700) == 0 || errno == EEXIST;
  const int error_number = errno;
  std::optional<PrivateDirectory> directory = is_made ? Open(path, what, other_users) : std::nullopt;
  if (!directory) {
    throw ResourceError(what + " " + Escape(path) + ": cannot be created: " + std::strerror(error_number));
  }
  return std::move(*directory);
}

std::optional<tokenizer::RegularFile> PrivateDirectory::OpenFile(const std::string& name) const {
  tokenizer::RegularFile file = tokenizer::OpenRegularFileAt(fd(), name);
  if (file.error_number == ENOENT) return std::nullopt;
  if (!file.ok()) Reject(PathOf(name), file.error);
  CheckOwnerAndMode(file.status, PathOf(name), other_users_ == OtherUsers::kMayRead ? "it will be replaced" : "");
  return file;
}

tokenizer::RegularFile PrivateDirectory::OpenFileForUpdate(const std::string& name, int flags) const {
  tokenizer::RegularFile file;
  int opened = -1;
  // O_NONBLOCK: opening a FIFO must not wait for a reader.
  do {
    opened = openat(fd(), name.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | flags, 0600);
  } while (opened < 0 && errno == EINTR);
  if (opened < 0) {
    file.error_number = errno;
    file.error = std::strerror(errno);
    return file;
  }
  file.fd = tokenizer::UniqueFd(opened);
  if (fstat(opened, &file.status) != 0) Reject(PathOf(name), std::strerror(errno));
  if (!S_ISREG(file.status.st_mode)) {
    Reject(PathOf(name), "not a regular file (" + tokenizer::FileTypeName(file.status.st_mode) + ")");
  }
  CheckOwnerAndMode(file.status, PathOf(name), "");
  return file;
}

std::vector<std::string> PrivateDirectory::Names() const {
  std::vector<std::string> names;
  const int listed = openat(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* directory = listed >= 0 ? fdopendir(listed) : nullptr;
  if (directory == nullptr) {
    if (listed >= 0) close(listed);
    return names;
  }
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(directory);
  return names;
}

}  // namespace vllm
