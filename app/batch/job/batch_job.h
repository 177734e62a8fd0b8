// BatchJob: the files of a batch whose output is a regular file: the output, the file of --errors and the job file. It
// starts, resumes or retries the job, and appends the records of rows so that a job killed at any moment can be
// resumed. Owned by BatchOutput; main thread.
//
// Invariant:
// 1. Entry i of a file describes the record between the end of the entry before it and its own end.
// 2. A record is written before its entry, and both are flushed, the record first.
// 3. Without --overwrite and --retry-errors, only records without an entry are removed.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/job/finished_rows.h"
#include "app/batch/job/job_file.h"
#include "app/batch/job/output_file.h"

namespace vllm::app {

struct JobOptions {
  bool overwrites = false;
  bool resumes = false;
  bool resumes_anyway = false;  // also if the input has changed; implies resumes
  bool retries_errors = false;  // implies resumes
  enum class Fsync : uint8_t { kRow, kSecond, kEnd } fsync = Fsync::kSecond;
};

// What the input was when a job last read all of it.
struct JobInput {
  uint64_t digest = 0;
  int64_t num_bytes = 0;
  int64_t num_rows = 0;
};

// The state of a job, from its files.
struct JobState {
  bool exists = false;  // the output exists and is not empty
  bool has_job_file = false;
  bool has_no_rows = false;  // of a job; the output has at most the header of a table
  bool is_locked = false;
  bool has_ended = false;
  nlohmann::ordered_json header;
  std::optional<JobInput> input;
  FinishedRows finished;
};
// With `leaves_out_failed`, failed rows are not in JobState::finished, because they are to run again.
JobState ReadJobState(const std::string& output_path, bool leaves_out_failed = false);

// Throws ConfigError if a run with these options may not write to the output, and says which flag does: `state` belongs
// to another job, is unfinished or finished, or is being written. `header` is that of the new run.
void CheckJob(const std::string& output_path, const JobState& state, const nlohmann::ordered_json& header,
              const JobOptions& options);

class BatchJob {
 public:
  // Starts or resumes the job. Locks the files, cuts records without an entry, and, to retry, removes the records of
  // failed rows. An empty `errors_path` means that failed rows are written to the output. Throws ConfigError as
  // CheckJob does, or if another program has changed the output, and ResourceError.
  BatchJob(const std::string& output_path, const std::string& errors_path, nlohmann::ordered_json header,
           const JobOptions& options);

  const std::string& path() const { return output_->path(); }
  const FinishedRows& finished() const { return finished_; }
  // Returns the number of bytes without an entry that the constructor has removed.
  int64_t num_cut_bytes() const { return num_cut_bytes_; }
  const std::optional<JobInput>& input() const { return input_; }

  bool has_errors_file() const { return errors_ != nullptr; }
  // Appends the first line of the output, such as the header of a table, and that of the errors file, unless they are
  // there. An empty text adds nothing.
  void AppendHeads(std::string_view head, std::string_view errors_head);
  // Appends the record of a row, which has line breaks already. The functions throw ResourceError; the files can then
  // still be resumed.
  void Append(JobEntry entry, std::string_view record);
  // Records what the whole input is.
  void SetInput(const JobInput& input);
  // Records that all rows have finished, and flushes the files. With `sorts`, first sorts the records by row.
  void End(bool sorts);
  // Call this several times per second: flushes the files and checks that they are still there when it is time.
  void Update();
  void Flush();

 private:
  void Start(const std::string& output_path, const std::string& errors_path);
  void AppendRecord(JobEntry entry, std::string_view record);
  void Resume(const std::string& output_path, const std::string& errors_path);
  // A record of the output and where it begins.
  struct Record {
    int64_t begin;
    JobEntry entry;
  };
  // Replaces the output and the job file by ones with only these records, in this order, and `errors` as
  // the entries of the errors file. A kill at any moment leaves the old files or the new ones.
  void Rewrite(const std::vector<Record>& records, const std::vector<JobEntry>& errors);
  // Sorts the records of the output by row, if they are not sorted.
  void Sort();
  // Replaces the output by the file that an interrupted Rewrite has left, if the job file already describes that one.
  void FinishRewrite(const std::string& output_path, int64_t generation);

  nlohmann::ordered_json header_;
  JobOptions options_;
  std::unique_ptr<OutputFile> output_;
  std::unique_ptr<OutputFile> errors_;
  std::unique_ptr<JobFile> job_;
  FinishedRows finished_;
  std::optional<JobInput> input_;
  std::array<bool, 2> has_head_{};  // of the output and of the errors file
  std::chrono::steady_clock::time_point flush_due_{};
  int64_t num_cut_bytes_ = 0;
};

}  // namespace vllm::app
