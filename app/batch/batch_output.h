// BatchOutput: writes the records of a batch to a file or to standard output. A regular file that it opens is locked
// and is never the input file, and if a write to this file fails, the partial line is removed. A record and its line
// break are passed to write() together. Owned by the batch command; main thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "app/terminal/output_stream.h"

namespace vllm::app {

class BatchOutput {
 public:
  // An empty `path` means standard output. If `ordered`, records are written in the order of their row indices. Throws
  // ConfigError if the file is the input file (also through links) or a directory, is locked by another process, or is
  // an existing regular file and `overwrite` is false. Throws ResourceError if the file cannot be opened, locked or
  // truncated.
  BatchOutput(const std::string& path, bool overwrite, int input_fd, bool ordered);
  ~BatchOutput();
  BatchOutput(const BatchOutput&) = delete;
  BatchOutput& operator=(const BatchOutput&) = delete;

  // Writes the record of the row with this index. If ordered, holds it until the records of all earlier rows are
  // written. Throws OutputClosed, ResourceError, Interrupted.
  void Put(int64_t row_index, const SafeText& record);
  // If ordered, no longer waits for the record of this row, which has none.
  void Skip(int64_t row_index);
  // Number and total bytes of the records that wait for the record of an earlier row.
  int64_t num_held() const { return static_cast<int64_t>(held_.size()); }
  int64_t held_bytes() const { return held_bytes_; }
  bool is_stdout() const { return file_ == nullptr; }

 private:
  // Writes the held records that no longer wait for an earlier row.
  void WriteHeld();
  void WriteRecord(const SafeText& record);

  int fd_ = -1;  // -1: standard output
  std::unique_ptr<OutputStream> file_;
  bool ordered_;
  int64_t next_index_ = 0;
  std::map<int64_t, std::optional<SafeText>> held_;  // by row index; nullopt: the row has no record
  int64_t held_bytes_ = 0;
};

// Throws ConfigError if `path` is the input file or a directory, or if it is an existing regular file and `overwrite`
// is false. The command calls this before it loads the model.
void CheckBatchOutput(const std::string& path, bool overwrite, int input_fd);

}  // namespace vllm::app
