// Where models are: what the user calls MODEL -> a folder of files, and the list of those that are here. Reads folders
// only; nothing is fetched. Pure functions of the file system and the environment.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vllm {

struct ModelLocation {
  std::string name;    // as the user says it
  std::string folder;  // with config.json in it
  std::string origin;  // "folder", "Hugging Face cache", "own folder", "shipped"
};

// A folder; a repository name in the Hugging Face cache or in $XDG_DATA_HOME/vllmcli/models; empty: the shipped model.
// Throws ModelError `model <name>: <why>`.
ModelLocation FindModel(const std::string& name);

// All that FindModel would find by name, sorted, the shipped one last.
std::vector<ModelLocation> ListModels();

// Sum of the sizes of the files in a folder, links followed; not its subfolders.
int64_t FolderBytes(const std::string& folder);

}  // namespace vllm
