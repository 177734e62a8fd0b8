#include "app/model/model_hub.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "app/cli/xdg.h"
#include "app/hub/hub_cache.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/gguf/file.h"
#include "tokenizer/formats/regular_file.h"
#include "tokenizer/loaders/load_tokenizer.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kShippedName = "guide";
constexpr char kModelHint[] =
    "vllmcli models lists the installed models; -m also takes a .gguf file or a Hugging Face model directory";

bool IsDirectory(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool IsFile(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// Returns true if a file of any type exists. If it is not a regular file, reading it later fails with an error that
// names it.
bool Exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Returns true if `name` may be one part of a repository's name. Such a name cannot lead out of the cache.
bool IsPlainName(std::string_view name) {
  if (name.empty() || name.size() > 96 || name.front() == '.' || name.front() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

bool IsRepositoryName(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return IsPlainName(name);
  return IsPlainName(name.substr(0, slash)) && IsPlainName(name.substr(slash + 1));
}

fs::path OwnDirectory() {
  const std::string data = DataHome();
  return data.empty() ? fs::path() : fs::path(data) / "models";
}

// Returns the GGUF models in a directory, sorted by name. A split model is listed as its first part. Vision encoders
// (mmproj files) are omitted.
std::vector<fs::path> GgufModelsIn(const fs::path& directory) {
  std::set<fs::path> models;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".gguf" || name.starts_with("mmproj") || !IsFile(entry.path())) continue;
    models.insert(GgufFile::PartsOf(entry.path().string()).front());
  }
  return {models.begin(), models.end()};
}

bool IsModelDirectory(const fs::path& directory) {
  return IsFile(directory / "config.json") || !GgufModelsIn(directory).empty();
}

// Returns the model in a directory: a Hugging Face model, or the only GGUF model. Throws ModelError.
ModelLocation LocationIn(const std::string& name, const fs::path& directory, const std::string& origin,
                         const std::string& load_format) {
  const bool has_config = Exists(directory / "config.json") || tokenizer::HasTokenizer(directory.string());
  if (load_format != "gguf" && has_config) return {name, directory.string(), origin};
  const std::vector<fs::path> files = load_format == "safetensors" ? std::vector<fs::path>() : GgufModelsIn(directory);
  if (files.size() == 1) return {name, directory.string(), origin, files[0].string()};
  if (files.empty()) {
    throw ModelError(
        "model " + name +
            (load_format == "gguf" ? ": no .gguf file in this directory" : ": no config.json in this directory"),
        kModelHint);
  }
  std::string names;
  for (const fs::path& file : files) names += (names.empty() ? "" : ", ") + Escape(file.filename().string(), 80);
  throw ModelError("model " + name + ": several .gguf files in this directory; name one (" + names + ")");
}

// Returns the GGUF model called `file` in a directory that may have several. Throws ModelError.
ModelLocation FileIn(const std::string& name, const fs::path& directory, const std::string& file,
                     const std::string& origin) {
  if (!IsFile(directory / file)) throw ModelError("model " + name + ": no such file in " + directory.string());
  return {name, directory.string(), origin, (directory / file).string()};
}

// Appends the models in a directory, with the names by which FindModel finds them.
void ListDirectory(const std::string& name, const fs::path& directory, const std::string& origin,
                   std::vector<ModelLocation>& models) {
  if (IsFile(directory / "config.json")) {
    models.push_back({name, directory.string(), origin});
    return;
  }
  const std::vector<fs::path> files = GgufModelsIn(directory);
  // LocationIn opens a directory with a tokenizer as a Hugging Face model.
  const bool is_named_by_directory = files.size() == 1 && !tokenizer::HasTokenizer(directory.string());
  for (const fs::path& file : files) {
    const std::string own_name = is_named_by_directory ? name : name + "/" + file.filename().string();
    models.push_back({own_name, directory.string(), origin, file.string()});
  }
}

// A repository in the Hugging Face cache or in vllmcli's own models directory.
struct Repository {
  fs::path directory;
  const char* origin;
};

std::optional<Repository> FindRepository(const std::string& name) {
  if (!IsRepositoryName(name)) return std::nullopt;
  if (const fs::path cache = HubCacheDirectory(); !cache.empty()) {
    const fs::path directory = RepositoryDirectory(cache, name);
    if (IsDirectory(directory)) {
      const std::optional<fs::path> snapshot = FindSnapshot(directory, "");
      if (!snapshot)
        throw ModelError("model " + name + ": its directory in the Hugging Face cache has no usable snapshot");
      return Repository{*snapshot, "Hugging Face cache"};
    }
  }
  if (const fs::path own = OwnDirectory(); !own.empty() && IsModelDirectory(own / name)) {
    return Repository{own / name, "own directory"};
  }
  return std::nullopt;
}

std::optional<fs::path> FindShipped() {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    const fs::path directory = self.parent_path();
    const fs::path installed = directory / VLLMCLI_DATADIR_FROM_BINDIR / "vllmcli" / "guide_model";
    if (IsFile(installed / "config.json")) return installed.lexically_normal();
    // In a build tree, the program is build/<preset>/vllmcli or build/<preset>/tests/app_test.
    for (const char* up : {"", ".."}) {
      const fs::path build = (directory / up).lexically_normal();
      if (!IsFile(build / "CMakeCache.txt")) continue;
      const fs::path source = (build / ".." / ".." / "app" / "guide_model").lexically_normal();
      if (IsFile(source / "config.json")) return source;
    }
  }
  const fs::path fixed = fs::path(VLLMCLI_FULL_DATADIR) / "vllmcli" / "guide_model";
  if (IsFile(fixed / "config.json")) return fixed;
  return std::nullopt;
}

}  // namespace

std::string ModelLocation::short_name() const {
  if (!IsDirectory(name) && !IsFile(name)) return name;
  fs::path path = name;
  if (path.filename().empty()) path = path.parent_path();
  const std::string last = path.filename().string();
  return last.empty() || last == "." || last == ".." ? name : last;
}

ModelLocation FindModel(const std::string& name, const std::string& load_format) {
  if (name.empty() || (name == kShippedName && !IsDirectory(name))) {
    const std::optional<fs::path> shipped = FindShipped();
    if (!shipped) {
      throw ModelError("model: the bundled model is not installed; set another with -m or $VLLMCLI_MODEL", kModelHint);
    }
    return {std::string(kShippedName), shipped->string(), "shipped"};
  }
  std::string path = name;
  if (path.rfind("~/", 0) == 0) {
    if (const char* home = std::getenv("HOME"); home != nullptr) path = home + path.substr(1);
  }
  if (IsDirectory(path)) return LocationIn(name, path, "directory", load_format);
  if (IsFile(path)) {
    if (fs::path(path).extension() != ".gguf") {
      throw ModelError("model " + name + ": is a file; must be a directory with config.json, or a .gguf file",
                       "if this is a part of a Hugging Face model, name its directory");
    }
    if (load_format == "safetensors") throw ModelError("model " + name + ": is a GGUF file, not safetensors");
    const fs::path directory = fs::path(path).parent_path();
    return {name, directory.empty() ? "." : directory.string(), "file", path};
  }
  if (const std::optional<Repository> repository = FindRepository(name)) {
    return LocationIn(name, repository->directory, repository->origin, load_format);
  }
  if (const size_t slash = name.rfind('/'); name.ends_with(".gguf") && IsPlainName(name.substr(slash + 1))) {
    if (slash == std::string::npos) {
      const fs::path own = OwnDirectory();
      if (!own.empty() && IsFile(own / name)) return FileIn(name, own, name, "own directory");
    } else if (const std::optional<Repository> repository = FindRepository(name.substr(0, slash))) {
      return FileIn(name, repository->directory, name.substr(slash + 1), repository->origin);
    }
  }
  if (struct stat status{}; stat(path.c_str(), &status) == 0) {
    throw ModelError("model " + Escape(name) + ": not a regular file or a directory (" +
                     tokenizer::FileTypeName(status.st_mode) + ")");
  }
  if (!IsRepositoryName(name)) throw ModelError("model " + name + ": no such file or directory", kModelHint);
  throw ModelError("model " + name + ": neither an existing path nor an installed model (Hugging Face cache: " +
                       HubCacheDirectory().string() + ")",
                   kModelHint);
}

std::vector<ModelLocation> ListModels() {
  std::vector<ModelLocation> models;
  std::error_code error;
  constexpr std::string_view kPrefix = "models--";
  for (const fs::directory_entry& entry : fs::directory_iterator(HubCacheDirectory(), error)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(kPrefix, 0) != 0) continue;
    name.erase(0, kPrefix.size());
    if (const size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
    const std::optional<fs::path> snapshot = FindSnapshot(entry.path(), "");
    if (snapshot) ListDirectory(name, *snapshot, "Hugging Face cache", models);
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(OwnDirectory(), error)) {
    const std::string name = entry.path().filename().string();
    if (IsModelDirectory(entry.path())) {
      ListDirectory(name, entry.path(), "own directory", models);
      continue;
    }
    std::error_code inner;
    for (const fs::directory_entry& child : fs::directory_iterator(entry.path(), inner)) {
      ListDirectory(name + "/" + child.path().filename().string(), child.path(), "own directory", models);
    }
  }
  for (const fs::path& file : GgufModelsIn(OwnDirectory())) {
    models.push_back({file.filename().string(), OwnDirectory().string(), "own directory", file.string()});
  }
  std::sort(models.begin(), models.end(),
            [](const ModelLocation& a, const ModelLocation& b) { return a.name < b.name; });
  if (const std::optional<fs::path> shipped = FindShipped()) {
    models.push_back({std::string(kShippedName), shipped->string(), "shipped"});
  }
  return models;
}

int64_t ModelBytes(const ModelLocation& location) {
  int64_t bytes = 0;
  std::error_code error;
  if (location.is_gguf()) {
    for (const std::string& part : GgufFile::PartsOf(location.gguf_file)) {
      const uintmax_t size = fs::file_size(part, error);
      if (!error) bytes += static_cast<int64_t>(size);
    }
    return bytes;
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(location.directory, error)) {
    std::error_code inner;
    if (entry.is_regular_file(inner)) bytes += static_cast<int64_t>(entry.file_size(inner));
  }
  return bytes;
}

}  // namespace vllm::app
