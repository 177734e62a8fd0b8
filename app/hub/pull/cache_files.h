// File operations of the cache that survive a crash. Each throws ResourceError `<what> <path>: <why>`. Pure functions
// of the file system; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace vllm::app {

// Creates a directory and its missing parents, readable as the umask allows: the cache may be shared.
void MakeCacheDirectory(const std::filesystem::path& path);

// Flushes a directory, so that a file created or renamed in it survives a power failure. Ignores file systems that
// cannot do this.
void SyncDirectory(const std::filesystem::path& path);

// Writes a small file through a temporary one and a rename, so that readers see the old or the new contents.
void ReplaceFile(const std::filesystem::path& path, std::string_view text, bool syncs);

// Renames a file, replacing one that exists.
void RenameFile(const std::filesystem::path& from, const std::filesystem::path& to);

// Returns the size of a regular file, following links, or nullopt if there is none.
std::optional<int64_t> RegularFileSize(const std::filesystem::path& path);

// Returns the bytes that the user may still write to the file system of the nearest existing directory above `path`, or
// nullopt if unknown.
std::optional<int64_t> FreeBytes(const std::filesystem::path& path);

// Returns eight random hexadecimal digits.
std::string RandomSuffix();

// Puts `blob` into a snapshot under the name `link`: as a relative symbolic link, or, if the file system has none or
// HF_HUB_DISABLE_SYMLINKS is set, as the file itself. The blob is then moved if `may_move`, else copied. Replaces what
// has this name.
void PutIntoSnapshot(const std::filesystem::path& blob, const std::filesystem::path& link, bool may_move);

}  // namespace vllm::app
