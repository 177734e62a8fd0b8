#include "app/installed/list_models.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/hub/choose_gguf.h"
#include "app/hub/hub_cache.h"
#include "app/hub/repository_path.h"
#include "app/installed/directory_files.h"
#include "app/installed/installed_repository.h"
#include "app/installed/shipped_model.h"
#include "engine/model_loader/gguf/format/file.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using tokenizer::NamesInDirectory;

constexpr char kIncomplete[] = "incomplete";
constexpr char kAdapter[] = "needs a model";

bool PartsExist(const std::string& gguf_file) {
  const std::vector<std::string> parts = GgufFile::PartsOf(gguf_file);
  return std::all_of(parts.begin(), parts.end(), IsFile);
}

// Returns N if a file is named NAME-xxxxx-of-N.safetensors, else 0.
int64_t NumShards(std::string_view path) {
  constexpr std::string_view kOf = "-of-";
  constexpr std::string_view kExtension = ".safetensors";
  const size_t of = path.rfind(kOf);
  if (of == std::string_view::npos || !path.ends_with(kExtension)) return 0;
  const std::string_view digits =
      path.substr(of + kOf.size(), path.size() - kExtension.size() - std::min(of + kOf.size(), path.size()));
  int64_t count = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  return error == std::errc() && end == digits.data() + digits.size() ? count : 0;
}

// Returns true for the files of a Hugging Face model that loading it may read.
bool IsNeeded(std::string_view path) {
  for (const std::string_view extension : {".safetensors", ".json", ".model", ".txt", ".jinja"}) {
    if (path.ends_with(extension)) return true;
  }
  return false;
}

// What the files of a Hugging Face model say about its completeness.
struct WeightFiles {
  bool is_any = false;      // there is a safetensors file
  bool is_missing = false;  // shards or files whose links lead nowhere are missing
};

WeightFiles CheckWeightFiles(const std::vector<DirectoryFile>& files) {
  WeightFiles weights;
  bool has_index = false;
  int64_t num_expected = 0;
  int64_t num_shards = 0;
  for (const DirectoryFile& file : files) {
    weights.is_missing = weights.is_missing || (file.is_missing && IsNeeded(file.path));
    if (file.is_missing || file.path.find('/') != std::string::npos) continue;
    has_index = has_index || file.path == "model.safetensors.index.json";
    if (!file.path.ends_with(".safetensors")) continue;
    weights.is_any = true;
    if (const int64_t count = NumShards(file.path); count > 0) {
      num_expected = std::max(num_expected, count);
      ++num_shards;
    }
  }
  weights.is_missing = weights.is_missing || num_shards < num_expected || (has_index && !weights.is_any);
  return weights;
}

// Returns true if a download into the repository's directory was begun and not finished.
bool HasPartialBlobs(const fs::path& repository) {
  const std::vector<std::string> names = NamesInDirectory((repository / "blobs").string());
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.ends_with(".incomplete") || name.ends_with(".vllmcli-part") || name.ends_with(".downloadInProgress");
  });
}

int64_t BytesOf(const std::vector<DirectoryFile>& files) {
  int64_t bytes = 0;
  for (const DirectoryFile& file : files) {
    if (!file.path.ends_with(".gguf")) bytes += file.bytes;
  }
  return bytes;
}

// Appends the models of a repository. Returns false if it has none.
bool AppendModels(const InstalledRepository& repository, std::vector<InstalledModel>& models) {
  const size_t num_before = models.size();
  const std::vector<DirectoryFile> files = FilesBelow(repository.directory);
  const bool is_model = IsFile(fs::path(repository.directory) / "config.json");
  const bool is_adapter = !is_model && IsFile(fs::path(repository.directory) / "adapter_config.json");
  if (is_model || is_adapter) {
    ModelLocation location{repository.repo_id, repository.directory, repository.origin, "", repository.repo_id};
    const WeightFiles weights = CheckWeightFiles(files);
    // Without weights, the model may be one with pickles, which are not loaded, or its download may have been stopped.
    const bool is_begun = !weights.is_any && repository.origin == kHubCacheOrigin &&
                          HasPartialBlobs(fs::path(repository.directory).parent_path().parent_path());
    const bool is_incomplete = weights.is_missing || is_begun;
    models.push_back({std::move(location), BytesOf(files), is_incomplete ? kIncomplete : is_adapter ? kAdapter : ""});
  }
  // All names, so that a model whose file is still missing is listed too.
  std::vector<std::string> paths;
  for (const DirectoryFile& file : files) paths.push_back(file.path);
  for (ModelLocation& location : GgufModelsOf(repository, paths)) {
    const int64_t bytes = ModelBytes(location);
    const bool is_complete = PartsExist(location.gguf_file);
    models.push_back({std::move(location), bytes, is_complete ? "" : kIncomplete});
  }
  return models.size() > num_before;
}

// Appends the models of a repository in the cache.
void AppendCached(const std::string& repo_id, const fs::path& directory, std::vector<InstalledModel>& models) {
  const std::optional<fs::path> snapshot = FindSnapshot(directory, "");
  if (snapshot && AppendModels({repo_id, snapshot->string(), kHubCacheOrigin}, models)) return;
  ModelLocation location{repo_id, directory.string(), kHubCacheOrigin, "", repo_id};
  const size_t num_snapshots = NamesInDirectory((directory / "snapshots").string()).size();
  if (!snapshot && num_snapshots > 1) {
    models.push_back({std::move(location), 0, "needs --revision"});
    for (const DirectoryFile& blob : FilesBelow((directory / "blobs").string())) models.back().bytes += blob.bytes;
    return;
  }
  // Without a usable snapshot, there may be the beginning of a download. A repository of another kind of model, such as
  // an embedding model without config.json, is complete and not listed.
  const std::vector<DirectoryFile> blobs = FilesBelow((directory / "blobs").string());
  const bool is_begun = num_snapshots == 0 ? !blobs.empty() : HasPartialBlobs(directory);
  if (!is_begun) return;
  models.push_back({std::move(location), 0, kIncomplete});
  for (const DirectoryFile& blob : blobs) models.back().bytes += blob.bytes;
}

void AppendHubCache(std::vector<InstalledModel>& models) {
  const fs::path cache = HubCacheDirectory();
  if (cache.empty()) return;
  constexpr std::string_view kPrefix = "models--";
  for (const std::string& name : NamesInDirectory(cache.string())) {
    if (!name.starts_with(kPrefix)) continue;
    std::string repo_id = name.substr(kPrefix.size());
    if (const size_t dashes = repo_id.find("--"); dashes != std::string::npos) repo_id.replace(dashes, 2, "/");
    if (IsRepositoryId(repo_id)) AppendCached(repo_id, cache / name, models);
  }
}

void AppendOwn(std::vector<InstalledModel>& models) {
  const fs::path own = OwnModelsDirectory();
  if (own.empty()) return;
  std::set<std::string> files;
  for (const std::string& name : NamesInDirectory(own.string())) {
    if (IsFile(own / name)) {
      if (name.ends_with(".gguf")) files.insert(GgufFile::PartsOf(name).front());
      continue;
    }
    if (!IsRepositoryNamePart(name) || !IsDirectory(own / name)) continue;
    if (const auto repository = FindInstalledRepository(name, ""); repository && repository->origin == kOwnOrigin) {
      AppendModels(*repository, models);
      continue;
    }
    for (const std::string& child : NamesInDirectory((own / name).string())) {
      const auto repository = FindInstalledRepository(name + "/" + child, "");
      if (repository && repository->origin == kOwnOrigin) AppendModels(*repository, models);
    }
  }
  for (const std::string& name : files) {
    if (!IsGgufModel(name)) continue;
    ModelLocation location{name, own.string(), kOwnOrigin, (own / name).string()};
    const int64_t bytes = ModelBytes(location);
    const bool is_complete = PartsExist(location.gguf_file);
    models.push_back({std::move(location), bytes, is_complete ? "" : kIncomplete});
  }
}

}  // namespace

std::vector<InstalledModel> ListModels() {
  std::vector<InstalledModel> models;
  AppendHubCache(models);
  AppendOwn(models);
  std::sort(models.begin(), models.end(),
            [](const InstalledModel& a, const InstalledModel& b) { return a.location.name < b.location.name; });
  if (std::optional<ModelLocation> shipped = FindShippedModel()) {
    const int64_t bytes = ModelBytes(*shipped);
    models.push_back({*std::move(shipped), bytes, ""});
  }
  return models;
}

bool IsComplete(const ModelLocation& location) {
  if (location.is_gguf()) return PartsExist(location.gguf_file);
  const WeightFiles weights = CheckWeightFiles(FilesBelow(location.directory));
  return weights.is_any && !weights.is_missing;
}

}  // namespace vllm::app
