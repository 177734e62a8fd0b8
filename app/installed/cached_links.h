// The names in the snapshots of a repository in the Hugging Face cache (hub_cache.h), and the blobs that they lead to.
// For removing models. Any thread.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace vllm::app {

struct CachedLink {
  std::string snapshot;    // the name of its directory
  std::string path;        // below the snapshot
  std::string blob;        // the file in blobs/ that the link leads to; empty: the file itself, or a link elsewhere
  bool is_doomed = false;  // to be removed
};

// Returns all names in all snapshots. A link counts as one to a blob only if it is a relative link to a file directly
// in the blobs of this repository.
std::vector<CachedLink> ReadCachedLinks(const std::filesystem::path& repository);

// Returns the paths of the refs whose contents are one of these snapshots.
std::vector<std::string> RefsTo(const std::filesystem::path& repository, const std::set<std::string>& snapshots);

}  // namespace vllm::app
