// Checks names that come from the hub or from the user before they become paths of the cache. Pure functions; any
// thread.
#pragma once

#include <string_view>

namespace vllm::app {

// Returns true if `path` names a file below a directory: segments of 1 to 255 bytes separated by '/', none of them "."
// or "..", in at most 1024 bytes of UTF-8 without control characters, backslashes and drive letters.
bool IsSafeRepositoryPath(std::string_view path);

// Returns true if `name` may be one part of a repository's name by the hub's rules.
bool IsRepositoryNamePart(std::string_view name);
// Returns true for "OWNER/NAME" and "NAME".
bool IsRepositoryId(std::string_view text);

// Returns true if `revision` is the 40 hexadecimal digits of a commit.
bool IsCommit(std::string_view revision);
// Returns true for names of branches and tags such as "main" and "refs/pr/1", and for commits.
bool IsRevision(std::string_view revision);

// Returns true for the name of a blob: 40 (SHA-1 of git) or 64 (SHA-256) hexadecimal digits.
bool IsBlobName(std::string_view name);

}  // namespace vllm::app
