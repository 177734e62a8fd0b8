// Lists the installed models: those in the Hugging Face cache and in the own models directory, and the bundled model.
// Reads directories, config.json files and the first bytes of GGUF files, so that a list of 100 models takes a few
// milliseconds. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/installed/model_location.h"

namespace vllm::app {

struct InstalledModel {
  ModelLocation location;  // by a name with which FindModel finds it, unless `problem` is set
  int64_t bytes = 0;       // of the files that exist
  std::string
      problem;  // "incomplete", why no snapshot can be chosen, or "needs a model" of a LoRA adapter; empty: none
};

// Returns the installed models sorted by name, except that the bundled model is last. A repository is listed once, or
// once per GGUF model in it.
std::vector<InstalledModel> ListModels();

// Returns false if files that loading the model needs are missing, as after an interrupted download: weights, parts of
// a split model, or files whose links lead nowhere.
bool IsComplete(const ModelLocation& location);

}  // namespace vllm::app
