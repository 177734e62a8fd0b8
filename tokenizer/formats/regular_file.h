// Opens and reads regular files, and writes to descriptors. A FIFO, socket, device or directory is rejected at once, so
// opening never waits for a writer. Failures are returned as values, so that each caller can throw the error type of
// its layer. The caller owns the results. Any thread.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

// Owns a file descriptor; -1 if there is none.
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

// Returns "a FIFO", "a directory", "a regular file", ...
std::string FileTypeName(mode_t mode);

struct RegularFile {
  UniqueFd fd;
  struct stat status {};
  std::string error;  // the reason for the failure; empty on success
  int error_number = 0;

  bool ok() const { return error.empty(); }
  bool is_missing() const;
  // Returns true if the failure is a lack of file descriptors or memory, not an unusable file.
  bool is_out_of_resources() const;
};

// Opens `path` for reading.
RegularFile OpenRegularFile(const std::string& path);
// Opens `name` in the directory `directory_fd` for reading. Does not follow a symbolic link.
RegularFile OpenRegularFileAt(int directory_fd, const std::string& name);

// Reads a whole file of at most `max_bytes` into `text`. On failure the result contains the error, and `text` is empty.
RegularFile ReadRegularFile(const std::string& path, size_t max_bytes, std::string& text);

// Writes all bytes, and waits while a descriptor with O_NONBLOCK accepts none. Returns 0 or an errno value. The
// descriptor may be of any type.
int WriteAll(int fd, std::string_view bytes);

// Returns the sorted names in a directory without "." and "..", or an empty list if it cannot be opened. Throws
// std::bad_alloc if memory runs out. The directory iterators of libstdc++ would terminate the program instead, because
// they advance in a noexcept function.
std::vector<std::string> NamesInDirectory(const std::string& path);

}  // namespace vllm::tokenizer
