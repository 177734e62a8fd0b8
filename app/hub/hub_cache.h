// The layout of the Hugging Face hub's cache, which transformers and llama.cpp share:
//
//   models--OWNER--NAME/blobs/ETAG                  contents; ETAG is a SHA-256, or the SHA-1 of git for small files
//   models--OWNER--NAME/snapshots/COMMIT/PATH       relative symbolic link to the blob, or the file itself
//   models--OWNER--NAME/refs/REVISION               text: the commit
//   .locks/models--OWNER--NAME/ETAG.lock            locked while the blob is downloaded
//
// The functions read the environment and directories; any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace vllm::app {

// Returns $HF_HUB_CACHE, $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or
// ~/.cache/huggingface/hub: the first whose variable is set. Returns an empty path if none is.
std::filesystem::path HubCacheDirectory();
// Returns the directory of the token and of the cache: $HF_HOME, $XDG_CACHE_HOME/huggingface or ~/.cache/huggingface.
std::filesystem::path HubHome();

// Returns "models--OWNER--NAME".
std::string RepositoryDirectoryName(std::string_view repo_id);
// Returns the repository's directory in the cache. REQUIRES: IsRepositoryId(repo_id).
std::filesystem::path RepositoryDirectory(const std::filesystem::path& cache, std::string_view repo_id);

// Returns the commit that refs/REVISION of a repository's directory contains, `revision` itself if it is a commit, or
// nullopt. An empty revision is main.
std::optional<std::string> CachedCommit(const std::filesystem::path& repository, std::string_view revision);

// Returns the snapshot of a revision if it exists. An empty revision is main; if a copied cache has no refs/main, it is
// the only snapshot. The snapshot may lack files of the repository.
std::optional<std::filesystem::path> FindSnapshot(const std::filesystem::path& repository, std::string_view revision);

}  // namespace vllm::app
