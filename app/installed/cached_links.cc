#include "app/installed/cached_links.h"

#include <sys/stat.h>

#include <system_error>

#include "app/installed/directory_files.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRefBytes = 4096;

// Returns the name of the blob that the link at `path` leads to, or "".
std::string BlobOf(const fs::path& repository, const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  if (error || target.is_absolute()) return "";
  const fs::path resolved = (path.parent_path() / target).lexically_normal();
  if (resolved.parent_path() != (repository / "blobs").lexically_normal()) return "";
  return resolved.filename().string();
}

}  // namespace

std::vector<CachedLink> ReadCachedLinks(const fs::path& repository) {
  std::vector<CachedLink> links;
  const fs::path snapshots = repository / "snapshots";
  for (const std::string& name : tokenizer::NamesInDirectory(snapshots.string())) {
    const fs::path snapshot = snapshots / name;
    struct stat status {};
    if (lstat(snapshot.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) continue;
    for (const DirectoryFile& file : FilesBelow(snapshot.string())) {
      links.push_back({name, file.path, BlobOf(repository, snapshot / file.path)});
    }
  }
  return links;
}

std::vector<std::string> RefsTo(const fs::path& repository, const std::set<std::string>& snapshots) {
  std::vector<std::string> refs;
  const std::string directory = (repository / "refs").string();
  for (const DirectoryFile& file : FilesBelow(directory)) {
    std::string commit;
    tokenizer::ReadRegularFile(directory + "/" + file.path, kMaxRefBytes, commit);
    if (snapshots.contains(commit.substr(0, commit.find_first_of(" \t\r\n")))) {
      refs.push_back(directory + "/" + file.path);
    }
  }
  return refs;
}

}  // namespace vllm::app
