// Chooses the files of a repository that a model needs. Pure functions except for the callback; any thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/hub/api/hub_listing.h"
#include "app/hub/model_reference.h"

namespace vllm::app {

// What to download.
struct PullRequest {
  ModelReference model;
  std::vector<std::string> include;  // patterns (glob.h); if not empty, they replace the default choice
  std::vector<std::string> exclude;  // patterns of files to leave out
};

struct ChosenFiles {
  std::vector<HubFile> files;           // in the order of the listing; a split GGUF model in the order of its parts
  std::string gguf_path;                // the model's file, or its first part; empty: not a GGUF model
  std::vector<std::string> other_tags;  // if no tag was given: the tags of the GGUF files that were not chosen
};

// Returns the contents of a small file of the repository.
using FileReader = std::function<std::string(const HubFile&)>;

// Chooses files by these rules:
// - with a tag, the GGUF file that ChooseGguf finds;
// - without a tag, if config.json and safetensors files exist: the files of the Hugging Face format, in the root and in
//   the module directories of sentence-transformers. Of the weights, those that model.safetensors.index.json lists,
//   else model.safetensors, else all safetensors files of the root;
// - without a tag, if adapter_config.json and adapter_model.safetensors exist: the files of the root that belong to a
//   LoRA adapter;
// - otherwise a GGUF file.
// Files that IsPickle are never chosen, not even by a pattern. Throws ModelError if the repository has no usable file,
// lacks a listed one, or no file matches the patterns; ConfigError if both a tag and `include` are given.
ChosenFiles ChooseFiles(const std::vector<HubFile>& listing, const PullRequest& request, const FileReader& read);

// Returns true if the name is one that PyTorch and Python use for pickles, which can run code when they are loaded.
bool IsPickle(std::string_view path);

}  // namespace vllm::app
