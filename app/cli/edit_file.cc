#include "app/cli/edit_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/cli/xdg.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using tokenizer::UniqueFd;

[[noreturn]] void Fail(const std::string& path, int error_number) {
  throw ResourceError("cannot write " + Escape(path) + ": " + std::strerror(error_number));
}

// Returns the file that `path` leads to, which may not exist.
std::string TargetOf(const std::string& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
  char* resolved = realpath(path.c_str(), nullptr);
  if (resolved == nullptr) {
    throw ConfigError("cannot write " + Escape(path) + ": the symbolic link leads to no file", "remove the link");
  }
  std::string target = resolved;
  std::free(resolved);
  return target;
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

void EditFile(const std::string& path, size_t max_bytes, const std::function<std::string(const std::string&)>& edit) {
  const std::string target = TargetOf(path);
  const std::string directory_path = DirectoryOf(target);
  if (!MakePrivateDirectory(directory_path)) Fail(path, errno);
  const UniqueFd directory(open(directory_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) Fail(path, errno);
  // Locks the directory, because the file itself is replaced. Closing the descriptor unlocks it. On a file system
  // without locks, the last of two writers wins.
  while (flock(directory.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(target, max_bytes, text);
  if (!file.ok() && !file.is_missing()) {
    const std::string message = "cannot edit " + Escape(path) + ": " + file.error;
    if (file.is_out_of_resources()) throw ResourceError(message);
    throw ConfigError(message);
  }
  const std::string edited = edit(text);
  if (edited == text) return;

  std::string temporary = target + ".XXXXXX";
  const UniqueFd out(mkostemp(temporary.data(), O_CLOEXEC));
  if (!out.valid()) Fail(path, errno);
  int error_number = tokenizer::WriteAll(out.get(), edited);
  if (error_number == 0 && file.ok()) {
    // Only root may keep the owner of another user's file. The new file then belongs to this user.
    if (fchown(out.get(), file.status.st_uid, file.status.st_gid) != 0) error_number = errno == EPERM ? 0 : errno;
    if (error_number == 0 && fchmod(out.get(), file.status.st_mode & 07777) != 0) error_number = errno;
  }
  if (error_number == 0 && fsync(out.get()) != 0) error_number = errno;
  if (error_number == 0 && rename(temporary.c_str(), target.c_str()) != 0) error_number = errno;
  if (error_number != 0) {
    unlink(temporary.c_str());
    Fail(path, error_number);
  }
  fsync(directory.get());
}

}  // namespace vllm::app
