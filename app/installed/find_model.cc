#include "app/installed/find_model.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "app/hub/choose_gguf.h"
#include "app/hub/hub_cache.h"
#include "app/hub/repository_path.h"
#include "app/installed/directory_files.h"
#include "app/installed/installed_repository.h"
#include "app/installed/model_aliases.h"
#include "app/installed/shipped_model.h"
#include "engine/config/escape.h"
#include "engine/model_loader/gguf/format/file.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

constexpr char kModelHint[] =
    "vllmcli models lists the installed models; -m also takes a .gguf file or a Hugging Face model directory";

// Returns the GGUF models in a directory, sorted by name. A split model is listed as its first part, also if another
// part is all there is. Vision encoders (mmproj files) are omitted.
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

// Returns the model in a directory that was named by its path: a Hugging Face model, or the only GGUF model. Throws
// ModelError.
ModelLocation LocationIn(const std::string& name, const std::string& directory, const std::string& load_format) {
  if (load_format != "gguf" && OpensAsHuggingFaceModel(directory)) return {name, directory, "directory"};
  const std::vector<fs::path> files = load_format == "safetensors" ? std::vector<fs::path>() : GgufModelsIn(directory);
  if (files.size() == 1) return {name, directory, "directory", files[0].string()};
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

// Returns the model at a path that the user named, or nullopt if there is neither a directory nor a file. Throws
// ModelError.
std::optional<ModelLocation> FindByPath(const std::string& name, const std::string& load_format) {
  std::string path = name;
  if (path.rfind("~/", 0) == 0) {
    if (const char* home = std::getenv("HOME"); home != nullptr) path = home + path.substr(1);
  }
  if (IsDirectory(path)) return LocationIn(name, path, load_format);
  if (IsFile(path)) {
    if (fs::path(path).extension() != ".gguf") {
      throw ModelError("model " + name + ": is a file; must be a directory with config.json, or a .gguf file",
                       "if this is a part of a Hugging Face model, name its directory");
    }
    if (load_format == "safetensors") throw ModelError("model " + name + ": is a GGUF file, not safetensors");
    const fs::path directory = fs::path(path).parent_path();
    return ModelLocation{name, directory.empty() ? "." : directory.string(), "file", path};
  }
  if (struct stat status{}; stat(path.c_str(), &status) == 0) {
    throw ModelError("model " + Escape(name) + ": not a regular file or a directory (" +
                     tokenizer::FileTypeName(status.st_mode) + ")");
  }
  return std::nullopt;
}

// Returns true if the reference names its owner, as all names do that users paste from the hub. A name without an
// owner is more likely a typing error.
bool HasOwner(const ModelReference& reference) { return reference.repo_id.find('/') != std::string::npos; }

// Returns the model of a repository, or nullopt if the repository is not installed. Throws MissingModelError if it
// lacks the model, and ModelError.
std::optional<ModelLocation> FindInRepository(const std::string& name, const ModelReference& reference,
                                              const std::string& load_format) {
  const std::optional<InstalledRepository> repository = FindInstalledRepository(reference.repo_id, reference.revision);
  if (!repository) return std::nullopt;
  const ModelLocation whole{name, repository->directory, repository->origin, "", repository->repo_id};
  if (reference.tag.empty() && load_format != "gguf" && OpensAsHuggingFaceModel(repository->directory)) return whole;
  if (load_format == "safetensors") {
    throw ModelError(
        "model " + name + ": " +
        (reference.tag.empty() ? "no config.json in " + repository->directory : "is a GGUF file, not safetensors"));
  }
  const std::vector<std::string> paths = ExistingPaths(FilesBelow(repository->directory));
  std::vector<std::string> parts;
  try {
    parts = ChooseGguf(paths, reference);
  } catch (const ModelError&) {
    if (reference.tag.empty() && IsFile(repository->directory + "/adapter_config.json")) {
      throw ModelError("model " + name + ": is a LoRA adapter",
                       "-m names the model that it was trained on; add --lora NAME=" + name);
    }
    const std::vector<std::string> tags = GgufTags(paths);
    std::string installed;
    for (const std::string& tag : tags) installed += (installed.empty() ? "" : ", ") + Escape(tag, 80);
    const std::string message =
        "model " + name + ": not installed (in " + repository->directory + ": " +
        (tags.empty() ? reference.tag.empty() ? "neither config.json nor a .gguf file" : "no .gguf file" : installed) +
        ")";
    if (HasOwner(reference)) throw MissingModelError(message, reference);
    throw ModelError(message, kModelHint);
  }
  ModelLocation location = whole;
  location.gguf_file = repository->directory + "/" + parts.front();
  return location;
}

// Finds FILE.gguf and NAME/FILE.gguf, which ParseModelReference does not take for repositories, in the own models
// directory and the cache.
std::optional<ModelLocation> FindByFileName(const std::string& name, const std::string& revision,
                                            const std::string& load_format) {
  if (!name.ends_with(".gguf") || !IsRepositoryId(name)) return std::nullopt;
  const size_t slash = name.find('/');
  if (slash != std::string::npos) {
    return FindInRepository(name, {name.substr(0, slash), name.substr(slash + 1), revision}, load_format);
  }
  const fs::path own = OwnModelsDirectory();
  if (own.empty() || !IsFile(own / name)) return std::nullopt;
  if (load_format == "safetensors") throw ModelError("model " + name + ": is a GGUF file, not safetensors");
  return ModelLocation{name, own.string(), kOwnOrigin, (own / name).string()};
}

// Returns `word` for a shell.
std::string ShellWord(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@%+=,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

MissingModelError::MissingModelError(const std::string& what, ModelReference reference)
    : ModelError(what, PullCommandText(reference) + " downloads it"), reference_(std::move(reference)) {}

std::string PullCommandText(const ModelReference& reference) {
  std::string command = "vllmcli pull " + ShellWord(ToString(reference));
  if (!reference.revision.empty()) command += " --revision " + ShellWord(reference.revision);
  return command;
}

ModelLocation FindModel(const std::string& given, const std::string& load_format, const std::string& revision) {
  const bool is_shipped = given.empty() || (given == kShippedModelName && !IsDirectory(given));
  std::string name = given;
  std::optional<ModelLocation> by_path;
  if (!is_shipped) {
    by_path = FindByPath(name, load_format);
    if (!by_path) {
      if (std::optional<std::string> target = FindModelAlias(name)) {
        name = *std::move(target);
        by_path = FindByPath(name, load_format);
      }
    }
  }
  if (!revision.empty() && (is_shipped || by_path)) {
    throw ConfigError("--revision: model " + (given.empty() ? kShippedModelName : Escape(given)) +
                      " is not a repository of the Hugging Face hub");
  }
  if (is_shipped) return ShippedModel();
  if (by_path) return *std::move(by_path);

  std::optional<ModelReference> reference = ParseModelReference(name);
  if (reference) {
    if (!revision.empty() && !reference->revision.empty() && reference->revision != revision) {
      throw ConfigError("--revision: differs from the revision in the URL (" + Escape(revision) + ", " +
                        Escape(reference->revision) + ")");
    }
    if (!revision.empty()) reference->revision = revision;
    // The name of a model that was given by its URL is that of the repository.
    const std::string shown = name.starts_with(reference->repo_id) ? name : ToString(*reference);
    if (std::optional<ModelLocation> found = FindInRepository(shown, *reference, load_format)) return *std::move(found);
  }
  if (std::optional<ModelLocation> found = FindByFileName(name, revision, load_format)) return *std::move(found);
  if (!reference) throw ModelError("model " + name + ": no such file or directory", kModelHint);
  const std::string message =
      "model " + name +
      ": neither an existing path nor an installed model (Hugging Face cache: " + HubCacheDirectory().string() + ")";
  if (HasOwner(*reference)) throw MissingModelError(message, *std::move(reference));
  throw ModelError(message, kModelHint);
}

std::string FindAdapter(const std::string& name) {
  std::string path = name;
  if (path.starts_with("~/")) {
    if (const char* home = std::getenv("HOME"); home != nullptr) path = home + path.substr(1);
  }
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path;
  const std::string what = "adapter " + Escape(name) + ": ";
  const std::optional<ModelReference> reference = ParseModelReference(name);
  if (!reference || reference->repo_id.find('/') == std::string::npos) {
    throw ModelError(what + "no such file or directory",
                     "An adapter is a PEFT directory, a .gguf file or a repository of the hub (OWNER/NAME).");
  }
  const std::optional<InstalledRepository> repository =
      FindInstalledRepository(reference->repo_id, reference->revision);
  if (!repository) throw MissingModelError(what + "not installed", *reference);
  if (reference->tag.empty() && IsFile(repository->directory + "/adapter_config.json")) return repository->directory;
  try {
    return repository->directory + "/" +
           ChooseGguf(ExistingPaths(FilesBelow(repository->directory)), *reference).front();
  } catch (const ModelError&) {
    throw MissingModelError(
        what + "not installed (no adapter_config.json and no such .gguf file in " + repository->directory + ")",
        *reference);
  }
}

}  // namespace vllm::app
