// A repository of the hub on this machine: a snapshot in the Hugging Face cache, or a directory of the same name in
// vllmcli's own models directory. Reads directories but no model files; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/installed/model_location.h"

namespace vllm::app {

struct InstalledRepository {
  std::string repo_id;
  std::string directory;
  std::string origin;
};

// Finds a repository by its name: the snapshot of `revision` in the cache, else a directory in the own models
// directory, which has no revisions. An empty revision is main, or the only snapshot. Returns nullopt if there is none.
std::optional<InstalledRepository> FindInstalledRepository(const std::string& repo_id, const std::string& revision);

// Returns true if the directory has a config.json or a tokenizer, so that it is opened as a Hugging Face model and not
// as a GGUF model.
bool OpensAsHuggingFaceModel(const std::string& directory);

// Returns the GGUF models in a repository, by names that FindModel understands: OWNER/NAME for the only model,
// OWNER/NAME:TAG if the tag means this file, else the path of the file below OWNER/NAME. `paths` are the files of the
// repository.
std::vector<ModelLocation> GgufModelsOf(const InstalledRepository& repository, const std::vector<std::string>& paths);

}  // namespace vllm::app
