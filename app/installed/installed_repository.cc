#include "app/installed/installed_repository.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "app/hub/choose_gguf.h"
#include "app/hub/hub_cache.h"
#include "app/hub/repository_path.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/regular_file.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

// Returns true if `tag` chooses the model at `path` and no other.
bool TagMeans(const std::string& tag, const std::string& path, const InstalledRepository& repository,
              const std::vector<std::string>& paths) {
  if (tag.empty()) return false;
  try {
    return ChooseGguf(paths, {repository.repo_id, tag, ""}).front() == path;
  } catch (const ModelError&) {
    return false;
  }
}

// Returns true if the directory is a model or an adapter: it has a config.json, an adapter_config.json or a GGUF model
// directly in it.
bool IsModelDirectory(const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) return false;
  for (const char* config : {"config.json", "adapter_config.json"}) {
    if (fs::is_regular_file(directory / config, error)) return true;
  }
  const std::vector<std::string> names = tokenizer::NamesInDirectory(directory.string());
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return IsGgufModel(name) && fs::is_regular_file(directory / name, error);
  });
}

}  // namespace

std::optional<InstalledRepository> FindInstalledRepository(const std::string& repo_id, const std::string& revision) {
  if (!IsRepositoryId(repo_id)) return std::nullopt;
  if (const fs::path cache = HubCacheDirectory(); !cache.empty()) {
    if (const std::optional<fs::path> snapshot = FindSnapshot(RepositoryDirectory(cache, repo_id), revision)) {
      return InstalledRepository{repo_id, snapshot->string(), kHubCacheOrigin};
    }
  }
  const fs::path own = OwnModelsDirectory();
  if (revision.empty() && !own.empty() && IsModelDirectory(own / repo_id)) {
    return InstalledRepository{repo_id, (own / repo_id).string(), kOwnOrigin};
  }
  return std::nullopt;
}

bool OpensAsHuggingFaceModel(const std::string& directory) {
  std::error_code error;
  return fs::exists(fs::path(directory) / "config.json", error) || tokenizer::HasTokenizer(directory);
}

std::vector<ModelLocation> GgufModelsOf(const InstalledRepository& repository, const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (IsGgufModel(path)) files.push_back(path);
  }
  const bool is_only = files.size() == 1 && !OpensAsHuggingFaceModel(repository.directory);
  std::vector<ModelLocation> models;
  for (const std::string& path : files) {
    const std::string tag = GgufTagOf(path);
    const std::string name = is_only                                  ? repository.repo_id
                             : TagMeans(tag, path, repository, paths) ? repository.repo_id + ":" + tag
                                                                      : repository.repo_id + "/" + path;
    models.push_back(
        {name, repository.directory, repository.origin, repository.directory + "/" + path, repository.repo_id});
  }
  return models;
}

}  // namespace vllm::app
