#include "app/hub/pull/cache_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <system_error>

#include "app/hub/hub_endpoint.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Fail(const char* action, const fs::path& path, int error) {
  throw ResourceError(std::string(action) + " " + Escape(path.string()) + ": " + std::strerror(error));
}

// Creates a symbolic link under a temporary name and renames it. Returns false if the file system has no such links.
bool ReplaceLink(const fs::path& target, const fs::path& link) {
  const fs::path temporary = link.string() + "." + RandomSuffix() + ".tmp";
  if (symlink(target.c_str(), temporary.c_str()) != 0) {
    if (errno == EPERM || errno == ENOTSUP || errno == EOPNOTSUPP || errno == ENOSYS) return false;
    Fail("cannot create the link", link, errno);
  }
  if (rename(temporary.c_str(), link.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    Fail("cannot create the link", link, error);
  }
  return true;
}

}  // namespace

void MakeCacheDirectory(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (!error && !fs::is_directory(path)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) Fail("cannot create the directory", path, error.value());
}

void SyncDirectory(const fs::path& path) {
  const tokenizer::UniqueFd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid()) [[maybe_unused]]
    const int done = fsync(fd.get());
}

void ReplaceFile(const fs::path& path, std::string_view text, bool syncs) {
  const std::string temporary = path.string() + "." + RandomSuffix() + ".tmp";
  int error = 0;
  {
    const tokenizer::UniqueFd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    error = fd.valid() ? tokenizer::WriteAll(fd.get(), text) : errno;
    if (error == 0 && syncs && fsync(fd.get()) != 0) error = errno;
  }
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    unlink(temporary.c_str());
    Fail("cannot write", path, error);
  }
  if (syncs) SyncDirectory(path.parent_path());
}

void RenameFile(const fs::path& from, const fs::path& to) {
  if (rename(from.c_str(), to.c_str()) != 0) Fail("cannot create", to, errno);
}

std::optional<int64_t> RegularFileSize(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return status.st_size;
}

std::optional<int64_t> FreeBytes(const fs::path& path) {
  for (fs::path directory = fs::absolute(path); !directory.empty(); directory = directory.parent_path()) {
    struct statvfs status {};
    if (statvfs(directory.c_str(), &status) == 0) {
      // A network file system without quotas may report more than 2^63 bytes.
      constexpr auto kMax = static_cast<long double>(INT64_MAX);
      const long double bytes = static_cast<long double>(status.f_bavail) * static_cast<long double>(status.f_frsize);
      return bytes >= kMax ? INT64_MAX : static_cast<int64_t>(bytes);
    }
    if (errno != ENOENT || directory == directory.parent_path()) return std::nullopt;
  }
  return std::nullopt;
}

std::string RandomSuffix() {
  std::random_device device;
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", device());
  return text.data();
}

void PutIntoSnapshot(const fs::path& blob, const fs::path& link, bool may_move) {
  MakeCacheDirectory(link.parent_path());
  if (!IsEnvironmentSwitchOn("HF_HUB_DISABLE_SYMLINKS")) {
    const fs::path target = blob.lexically_relative(link.parent_path());
    std::error_code error;
    if (fs::is_symlink(link, error) && fs::read_symlink(link, error) == target) return;
    if (ReplaceLink(target, link)) return;
  }
  if (may_move) {
    RenameFile(blob, link);
    return;
  }
  const fs::path temporary = link.string() + "." + RandomSuffix() + ".tmp";
  std::error_code error;
  fs::copy_file(blob, temporary, error);
  if (!error) fs::rename(temporary, link, error);
  if (!error) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  Fail("cannot create", link, error.value());
}

}  // namespace vllm::app
