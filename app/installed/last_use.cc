#include "app/installed/last_use.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "app/cli/xdg.h"
#include "engine/config/hash.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

std::string Directory() {
  const std::string home = StateHome();
  return home.empty() ? "" : home + "/last-use";
}

// Returns the path of the model's file, or "" if there is none.
std::string PathOf(const ModelLocation& location) {
  const std::string directory = Directory();
  const bool is_path = location.origin == "directory" || location.origin == "file";
  if (directory.empty() || is_path) return "";
  // The path inside the repository, because another revision is in another directory.
  std::string key = location.origin + '\0' + location.repo_id + '\0';
  if (location.is_gguf()) {
    const std::string& file = location.gguf_file;
    key += file.starts_with(location.directory) ? file.substr(location.directory.size()) : file;
  }
  const Hash128 hash = HashBytes128(key);
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), "/%016llx%016llx", static_cast<unsigned long long>(hash.hi),
                static_cast<unsigned long long>(hash.lo));
  return directory + name.data();
}

}  // namespace

void NoteUse(const ModelLocation& location) {
  const std::string path = PathOf(location);
  if (path.empty() || !MakePrivateDirectory(Directory())) return;
  const tokenizer::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  if (fd.valid()) futimens(fd.get(), nullptr);
}

std::optional<int64_t> LastUseMs(const ModelLocation& location) {
  const std::string path = PathOf(location);
  struct stat status {};
  if (path.empty() || lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return int64_t{1000} * status.st_mtim.tv_sec + status.st_mtim.tv_nsec / 1'000'000;
}

void ForgetUse(const ModelLocation& location) {
  if (const std::string path = PathOf(location); !path.empty()) unlink(path.c_str());
}

}  // namespace vllm::app
