// BatchOutput: where a batch's records go: a file of its own (locked, never the input) or standard output. A record is
// one write() of a whole line; when the disk fills up a half-written line is cut off again. Main thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "app/terminal/output_stream.h"

namespace vllm {

class BatchOutput {
 public:
  // `path` empty: standard output. Throws ConfigError when the file exists and `overwrite` is false, is the input
  // (also through links) or is in use; ResourceError when it cannot be made.
  BatchOutput(const std::string& path, bool overwrite, int input_fd, bool ordered);
  ~BatchOutput();
  BatchOutput(const BatchOutput&) = delete;
  BatchOutput& operator=(const BatchOutput&) = delete;

  // The record of the row with this index; written now, or when its turn has come. Throws OutputClosed, ResourceError.
  void Put(int64_t row_index, const SafeText& record);
  // Rows that wait for an earlier one.
  int64_t num_held() const { return static_cast<int64_t>(held_.size()); }
  int64_t held_bytes() const { return held_bytes_; }
  bool is_stdout() const { return file_ == nullptr; }

 private:
  void WriteRecord(const SafeText& record);

  int fd_ = -1;  // -1: standard output
  std::unique_ptr<OutputStream> file_;
  bool ordered_;
  int64_t next_index_ = 0;
  std::map<int64_t, SafeText> held_;
  int64_t held_bytes_ = 0;
};

// Throws what the constructor above throws for a file that exists, before anything is loaded.
void CheckBatchOutput(const std::string& path, bool overwrite, int input_fd);

}  // namespace vllm
