// Opens and reads files that must be regular files. A FIFO, socket, device or directory is refused at once: opening
// never waits for a writer. Failures are values, so that each caller throws the error type of its own layer. Free
// functions; any thread.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <vector>

namespace vllm {

// Owns a file descriptor; -1 when it has none.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  ~UniqueFd();
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.Release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int Release();

 private:
  int fd_ = -1;
};

// "a FIFO", "a directory", "a regular file", ...
std::string FileTypeName(mode_t mode);

struct RegularFile {
  UniqueFd fd;
  struct stat status {};
  std::string error;  // why the file cannot be opened; empty on success
  int error_number = 0;

  bool ok() const { return error.empty(); }
  bool is_missing() const;
  // Whether the machine lacks a resource (descriptors, memory), as opposed to a file that is unusable.
  bool is_out_of_resources() const;
};

// Opens `path` for reading.
RegularFile OpenRegularFile(const std::string& path);
// Opens `name` below the directory `directory_fd` for reading, without following a symbolic link.
RegularFile OpenRegularFileAt(int directory_fd, const std::string& name);

// Reads a whole file of at most `max_bytes` into `text`. On failure the result has the error, and `text` is empty.
RegularFile ReadRegularFile(const std::string& path, size_t max_bytes, std::string& text);

// The names in a directory but "." and "..", sorted; empty when it cannot be read. Unlike std::filesystem's iterators,
// whose increments must not throw, this throws std::bad_alloc without memory.
std::vector<std::string> NamesInDirectory(const std::string& path);

}  // namespace vllm
