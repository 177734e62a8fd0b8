// Finds models: resolves the user's name for a model to a Hugging Face model directory or a GGUF file, and lists the
// installed models. Reads directories but no model files, and downloads nothing. Pure functions of the file system and
// the environment; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vllm::app {

struct ModelLocation {
  std::string name;            // as the user gives it; "guide": the bundled model
  std::string directory;       // contains config.json or the GGUF file
  std::string origin;          // "directory", "file", "Hugging Face cache", "own directory" or "shipped"
  std::string gguf_file = {};  // the model, or one of its parts; empty: a Hugging Face model

  // Returns the last part of a path, or the repository's name, for display.
  std::string short_name() const;
  bool is_gguf() const { return !gguf_file.empty(); }
  const std::string& path() const { return is_gguf() ? gguf_file : directory; }
};

// Finds a model. `name` is one of: a directory, a .gguf file, a repository in the Hugging Face cache or in
// $XDG_DATA_HOME/vllmcli/models, a .gguf file in such a repository ("OWNER/NAME/FILE.gguf"), or a .gguf file directly
// in $XDG_DATA_HOME/vllmcli/models ("FILE.gguf"). An empty name is the bundled model, and so is "guide" unless a
// directory has this name. A directory must contain exactly one GGUF model if load_format is "gguf", or if the
// directory has neither config.json nor a tokenizer. `load_format` is the value of --load-format. Throws ModelError
// `model <name>: <why>`.
ModelLocation FindModel(const std::string& name, const std::string& load_format = "auto");

// Returns the installed models, with names by which FindModel finds them. The list is sorted by name, except that the
// bundled model is last.
std::vector<ModelLocation> ListModels();

// Returns the total size of the model's files, in bytes: the parts of its GGUF file, or all files in its directory,
// without those in subdirectories. Follows links.
int64_t ModelBytes(const ModelLocation& location);

}  // namespace vllm::app
