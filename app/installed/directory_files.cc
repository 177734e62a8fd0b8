#include "app/installed/directory_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <deque>
#include <system_error>

#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxFiles = 10000;

}  // namespace

bool IsDirectory(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

bool IsFile(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

std::vector<DirectoryFile> FilesBelow(const std::string& directory) {
  struct Level {
    std::string prefix;  // the path of a directory relative to `directory`, with '/' at its end
    int depth;
  };
  std::vector<DirectoryFile> files;
  std::deque<Level> levels = {{"", 0}};
  for (size_t num_seen = 0; !levels.empty(); levels.pop_front()) {
    const Level level = levels.front();
    for (const std::string& name : tokenizer::NamesInDirectory(directory + "/" + level.prefix)) {
      if (++num_seen > kMaxFiles) break;
      DirectoryFile file{level.prefix + name};
      const std::string path = directory + "/" + file.path;
      struct stat status {};
      if (lstat(path.c_str(), &status) != 0) continue;
      if (S_ISDIR(status.st_mode)) {
        if (level.depth < kMaxDepth) levels.push_back({file.path + "/", level.depth + 1});
        continue;
      }
      if (S_ISLNK(status.st_mode)) {
        file.is_missing = stat(path.c_str(), &status) != 0;
        if (!file.is_missing && S_ISDIR(status.st_mode)) continue;
      }
      if (!file.is_missing && !S_ISREG(status.st_mode)) continue;
      file.bytes = file.is_missing ? 0 : static_cast<int64_t>(status.st_size);
      files.push_back(std::move(file));
    }
  }
  std::sort(files.begin(), files.end(), [](const DirectoryFile& a, const DirectoryFile& b) { return a.path < b.path; });
  return files;
}

std::vector<std::string> ExistingPaths(const std::vector<DirectoryFile>& files) {
  std::vector<std::string> paths;
  for (const DirectoryFile& file : files) {
    if (!file.is_missing) paths.push_back(file.path);
  }
  return paths;
}

}  // namespace vllm::app
