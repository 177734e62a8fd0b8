// Parses the hub's answers about a repository: its commit and its files. The answers are untrusted. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

// A file of a repository at one commit.
struct HubFile {
  std::string path;     // IsSafeRepositoryPath
  int64_t size = 0;     // in bytes
  std::string etag;     // name of the blob: SHA-256 of a large file, SHA-1 of git for others
  bool is_lfs = false;  // true: etag is the SHA-256

  friend bool operator==(const HubFile&, const HubFile&) = default;
};

// The functions throw ModelError `model <repo_id>: <why>`.

// Returns the commit in the answer of /api/models/ID/revision/REVISION: {"sha": COMMIT, ...}.
std::string ParseCommit(std::string_view json, const std::string& repo_id);

// Appends the files in one page of /api/models/ID/tree/COMMIT?recursive=true:
//   [{"type": "file", "path": PATH, "size": N, "oid": SHA1, "lfs": {"oid": SHA256, "size": N}}, ...]
// "lfs" is absent or null for small files. Entries of other types are ignored. Rejects paths that would lead out of the
// cache, and more than kMaxHubFiles files in total.
void ParseTree(std::string_view json, const std::string& repo_id, std::vector<HubFile>& files);

inline constexpr size_t kMaxHubFiles = 100'000;

}  // namespace vllm::app
