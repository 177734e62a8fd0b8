// BatchOutput: writes the records of a batch to the files of a job, or to standard output, a pipe or a device. A record
// and its line break are passed to write() together. Owned by the batch command; main thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "app/batch/job/batch_job.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {

class BatchOutput {
 public:
  // Writes to the files of a job. If `ordered`, records are written in the order of their rows.
  BatchOutput(std::unique_ptr<BatchJob> job, bool ordered) : job_(std::move(job)), ordered_(ordered) {}
  // Writes to standard output if `path` is empty, else to a pipe or a device, and the records of failed rows to
  // `errors`, unless it is null. Throws ResourceError if the file cannot be opened.
  BatchOutput(const std::string& path, std::unique_ptr<OutputFile> errors, bool ordered);

  // Returns true if failed rows are written to a separate file.
  bool has_errors_file() const { return job_ != nullptr ? job_->has_errors_file() : errors_ != nullptr; }
  // Writes the first line of the output and of the errors file. Call it before the first Put.
  void PutHeads(const std::string& head, const std::string& errors_head);
  // Writes the record of a row, without its line break. `order` counts the rows that are run, from 0. If ordered, holds
  // the record until those of all earlier rows are written. A record for the errors file is written at once. Throws
  // OutputClosed, ResourceError, Interrupted.
  void Put(int64_t order, const JobEntry& entry, std::string record);
  // If ordered, no longer waits for the record of this row, which has none.
  void Skip(int64_t order);
  // Number and total bytes of the records that wait for the record of an earlier row.
  int64_t num_held() const { return static_cast<int64_t>(held_.size()); }
  int64_t held_bytes() const { return held_bytes_; }
  bool is_stdout() const { return job_ == nullptr && stream_ == nullptr; }
  bool is_ordered() const { return ordered_; }
  // Null if the output is no regular file.
  BatchJob* job() { return job_.get(); }

 private:
  struct Held {
    JobEntry entry;
    std::string record;
  };
  // Writes the held records that no longer wait for an earlier row.
  void WriteHeld();
  void WriteRecord(const JobEntry& entry, std::string record);

  std::unique_ptr<BatchJob> job_;
  tokenizer::UniqueFd fd_;
  std::unique_ptr<OutputStream> stream_;  // of fd_; null: standard output
  std::unique_ptr<OutputFile> errors_;
  bool ordered_;
  int64_t next_order_ = 0;
  std::map<int64_t, std::optional<Held>> held_;  // nullopt: the row has no record
  int64_t held_bytes_ = 0;
};

// Returns true if the output is a regular file, or a new one, so that it belongs to a job. Throws ConfigError if `path`
// is the input file, also through links, or a directory. An empty `path` means standard output.
bool IsJobOutput(const std::string& path, int input_fd);

}  // namespace vllm::app
