// Where models are: what the user calls MODEL -> a directory of files or a GGUF file, and the list of those that are
// here. Reads directories only; nothing is fetched. Pure functions of the file system and the environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vllm {

struct ModelLocation {
  std::string name;            // as the user says it
  std::string directory;       // with config.json in it, or with the GGUF file
  std::string origin;          // "directory", "Hugging Face cache", "own directory", "shipped"
  std::string gguf_file = {};  // the model is this file (with the other parts of a split one) and nothing beside it

  // For a line on the screen: the last part of a path, or the repository's name.
  std::string short_name() const;
  bool is_gguf() const { return !gguf_file.empty(); }
  const std::string& path() const { return is_gguf() ? gguf_file : directory; }
};

// A directory; a .gguf file; a repository name in the Hugging Face cache or in $XDG_DATA_HOME/vllmcli/models, or one of
// its .gguf files ("OWNER/NAME/FILE.gguf"); empty: the shipped model. A directory without config.json, or any with
// load_format "gguf", is its only GGUF file. Throws ModelError `model <name>: <why>`.
ModelLocation FindModel(const std::string& name, const std::string& load_format = "auto");

// All that FindModel would find by name, sorted, the shipped one last.
std::vector<ModelLocation> ListModels();

// Sum of the sizes of the model's files, links followed: its GGUF file's parts, or all in its directory but
// subdirectories.
int64_t ModelBytes(const ModelLocation& location);

}  // namespace vllm
