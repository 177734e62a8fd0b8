#include "app/cli/xdg.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>

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

}  // namespace vllm::app
