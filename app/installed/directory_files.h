// Looks at the files of a model's directory. Reads directories, not files; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace vllm::app {

// Follow links, and return false if the path cannot be examined.
bool IsDirectory(const std::filesystem::path& path);
bool IsFile(const std::filesystem::path& path);

struct DirectoryFile {
  std::string path;         // relative to the directory, with '/'
  int64_t bytes = 0;        // of the file that a link leads to
  bool is_missing = false;  // a link that leads to no file, as after an interrupted download
};

// Returns the regular files below a directory and the links to files, sorted by path. Does not follow links to
// directories. Stops at 8 levels and at 10,000 files. Returns an empty list if the directory cannot be read.
std::vector<DirectoryFile> FilesBelow(const std::string& directory);

// Returns the paths of the files that exist.
std::vector<std::string> ExistingPaths(const std::vector<DirectoryFile>& files);

}  // namespace vllm::app
