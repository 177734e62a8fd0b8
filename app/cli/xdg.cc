#include "app/cli/xdg.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

std::string Home(const char* variable, const char* below_home) {
  const char* value = std::getenv(variable);
  if (value != nullptr && value[0] == '/') return std::string(value) + "/vllmcli";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') return "";
  return std::string(home) + below_home + "/vllmcli";
}

}  // namespace

std::string ConfigHome() { return Home("XDG_CONFIG_HOME", "/.config"); }
std::string StateHome() { return Home("XDG_STATE_HOME", "/.local/state"); }
std::string CacheHome() { return Home("XDG_CACHE_HOME", "/.cache"); }
std::string DataHome() { return Home("XDG_DATA_HOME", "/.local/share"); }

bool MakePrivateDirectory(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    if (mkdir(path.substr(0, slash).c_str(), 0700) != 0 && errno != EEXIST) return false;
  }
  if (mkdir(path.c_str(), 0700) == 0) return true;
  struct stat status {};
  if (errno != EEXIST || stat(path.c_str(), &status) != 0) return false;
  if (!S_ISDIR(status.st_mode)) errno = ENOTDIR;
  return S_ISDIR(status.st_mode);
}

void WriteNewFile(const std::string& path, const std::string& text) {
  const tokenizer::UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const int error = fd.valid() ? tokenizer::WriteAll(fd.get(), text) : errno;
  if (error != 0) throw ResourceError("cannot write " + Escape(path) + ": " + std::strerror(error));
}

}  // namespace vllm::app
