// ModelLocation: where an installed model is. A plain value. The functions read directories but no model files; any
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace vllm::app {

inline constexpr char kHubCacheOrigin[] = "Hugging Face cache";
inline constexpr char kOwnOrigin[] = "own directory";
inline constexpr char kShippedOrigin[] = "shipped";

// The name of the bundled model.
inline constexpr char kShippedModelName[] = "guide";

struct ModelLocation {
  std::string name;            // as the user gives it, or that of an alias; "guide": the bundled model
  std::string directory;       // contains config.json or the GGUF file, which may be in a directory below
  std::string origin;          // "directory", "file" or one of the constants above
  std::string gguf_file = {};  // the model, or the first of its parts; empty: a Hugging Face model
  std::string repo_id = {};    // the repository in the cache or in the own directory; empty: none

  // Returns the last part of a path, or the repository's name, for display.
  std::string short_name() const;
  bool is_gguf() const { return !gguf_file.empty(); }
  const std::string& path() const { return is_gguf() ? gguf_file : directory; }
};

// Returns $XDG_DATA_HOME/vllmcli/models, where users put their own models, or an empty path if neither the variable
// nor HOME is an absolute path.
std::filesystem::path OwnModelsDirectory();

// Returns the total size of the model's files, in bytes: the parts of its GGUF file, or all files in its directory,
// without those in subdirectories. Follows links.
int64_t ModelBytes(const ModelLocation& location);

}  // namespace vllm::app
