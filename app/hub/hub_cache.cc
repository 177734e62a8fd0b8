#include "app/hub/hub_cache.h"

#include <cstdlib>
#include <system_error>

#include "app/hub/repository_path.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRefBytes = 4096;

// Returns the value of a variable as a path, with "~" replaced as huggingface_hub does, or an empty path.
fs::path PathVariable(const char* variable) {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return {};
  const std::string_view text = value;
  const char* home = std::getenv("HOME");
  if (home != nullptr && (text == "~" || text.starts_with("~/"))) return home + std::string(text.substr(1));
  return text;
}

bool IsDirectory(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

fs::path HubHome() {
  if (const fs::path home = PathVariable("HF_HOME"); !home.empty()) return home;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return fs::path(cache) / "huggingface";
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return fs::path(home) / ".cache" / "huggingface";
}

fs::path HubCacheDirectory() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const fs::path cache = PathVariable(variable); !cache.empty()) return cache;
  }
  const fs::path home = HubHome();
  return home.empty() ? home : home / "hub";
}

std::string RepositoryDirectoryName(std::string_view repo_id) {
  std::string name = "models--" + std::string(repo_id);
  if (const size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
  return name;
}

fs::path RepositoryDirectory(const fs::path& cache, std::string_view repo_id) {
  return cache / RepositoryDirectoryName(repo_id);
}

std::optional<std::string> CachedCommit(const fs::path& repository, std::string_view revision) {
  if (IsCommit(revision)) return std::string(revision);
  const std::string name(revision.empty() ? "main" : revision);
  if (!IsRevision(name)) return std::nullopt;
  std::string text;
  tokenizer::ReadRegularFile((repository / "refs" / name).string(), kMaxRefBytes, text);
  text = text.substr(0, text.find_first_of(" \t\r\n"));
  // Not only commits: a cache that was copied by hand may have snapshots of any name.
  if (!IsSafeRepositoryPath(text) || text.find('/') != std::string::npos) return std::nullopt;
  return text;
}

std::optional<fs::path> FindSnapshot(const fs::path& repository, std::string_view revision) {
  const fs::path snapshots = repository / "snapshots";
  const std::optional<std::string> commit = CachedCommit(repository, revision);
  if (commit && IsDirectory(snapshots / *commit)) return snapshots / *commit;
  if (!revision.empty()) return std::nullopt;
  std::optional<fs::path> only;
  for (const std::string& name : tokenizer::NamesInDirectory(snapshots.string())) {
    if (only) return std::nullopt;
    only = snapshots / name;
  }
  return only;
}

}  // namespace vllm::app
