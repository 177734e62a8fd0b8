// EditFile changes a small text file of the user, such as config.toml, so that other programs see either the old or the
// new contents, also after a crash. Any thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace vllm::app {

// Replaces the contents of the file at `path` by edit(contents), through a new file and a rename. A missing file is
// empty, and is created with mode 0600 unless edit() returns an empty text; missing directories are created with mode
// 0700. A symbolic link stays, and the file that it leads to is replaced; the mode and, if possible, the owner stay.
// Two processes that call EditFile on files of one directory do so one after the other. edit() may throw; then the file
// is unchanged. Throws ConfigError if the file cannot be read, is no regular file or has more than `max_bytes` bytes,
// and ResourceError if it cannot be written.
void EditFile(const std::string& path, size_t max_bytes, const std::function<std::string(const std::string&)>& edit);

}  // namespace vllm::app
