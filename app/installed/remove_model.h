// Removes models from the Hugging Face cache and from the own models directory. Any thread.
//
// Removing a repository removes its directory. Removing one file or one revision removes its links, the blobs that no
// other snapshot uses, and the refs to snapshots that are gone, as `hf cache delete` does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/installed/model_location.h"

namespace vllm::app {

struct RemovalPlan {
  std::string name;                      // as the user gives it, or that of an alias
  std::string directory;                 // everything below this directory is removed; empty: only `files`
  std::vector<std::string> files;        // removed in this order: refs, links, then blobs
  std::vector<std::string> empty_after;  // directories that are removed if they are empty then, in this order
  std::string locks;                     // the directory with the locks of the repository's blobs; empty: none
  std::vector<std::string> blobs;        // the blobs to lock; empty with `directory`: all
  int64_t num_files = 0;                 // files whose contents are removed
  int64_t bytes = 0;                     // that this frees
  std::vector<ModelLocation> models;     // the models that are gone then, for ForgetUse
};

// Finds what must be removed. `name` is an alias, OWNER/NAME, OWNER/NAME:TAG for one GGUF file with all its parts, or a
// file in the own models directory. A `revision` limits it to one snapshot. Changes nothing. Throws ModelError if the
// model is not installed, and ConfigError for the path of a model, the bundled model, and a repository whose directory
// is a symbolic link.
RemovalPlan PlanRemoval(const std::string& name, const std::string& revision);

// Removes the model and returns the number of bytes that this freed. Throws RequestError, without a change, if another
// process is downloading one of the files, and ResourceError if a file cannot be removed.
int64_t Remove(const RemovalPlan& plan);

}  // namespace vllm::app
