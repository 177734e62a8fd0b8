#include "engine/model_loader/packed_cache/private_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

[[noreturn]] void Reject(const std::string& path, const std::string& why) {
  throw ModelError("packed weights " + Escape(path) + ": not used: " + why);
}

// REQUIRES: `status` is from fstat() of the open file.
void CheckOwnerAndMode(const struct stat& status, const std::string& path, const char* remedy) {
  if (status.st_uid != geteuid()) {
    Reject(path, "belongs to another user (uid " + std::to_string(status.st_uid) + ")");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777u);
    Reject(path, std::string("writable by group or others (mode ") + mode.data() + "); " + remedy);
  }
}

}  // namespace

std::optional<PrivateDirectory> PrivateDirectory::Open(const std::string& path) {
  tokenizer::UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) {
    const int error = errno;
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) return std::nullopt;
    if ((error == ENOTDIR || error == ELOOP) && !S_ISDIR(status.st_mode)) {
      Reject(path, "not a directory (" + tokenizer::FileTypeName(status.st_mode) + ")");
    }
    Reject(path, std::strerror(error));
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) Reject(path, std::strerror(errno));
  CheckOwnerAndMode(status, path, "run chmod 700 on it");
  return PrivateDirectory(std::move(fd), path);
}

std::optional<tokenizer::RegularFile> PrivateDirectory::OpenFile(const std::string& name) const {
  tokenizer::RegularFile file = tokenizer::OpenRegularFileAt(fd(), name);
  if (file.error_number == ENOENT) return std::nullopt;
  if (!file.ok()) Reject(PathOf(name), file.error);
  CheckOwnerAndMode(file.status, PathOf(name), "it will be replaced");
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
