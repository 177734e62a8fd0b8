// InputScan: counts the rows of a batch input and computes its digest on its own thread, so that the job starts at
// once. Owned by the batch command; main thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>

#include "app/batch/job/batch_job.h"

namespace vllm::app {

// How the input is divided into rows, as in RecordReader.
struct RowFormat {
  char delimiter = '\0';  // of a table, whose first row is the header; 0: lines
};

// Reads the regular file from its begin, with pread. Returns nullopt if reading fails or `stops` becomes true.
std::optional<JobInput> ScanInput(int fd, const RowFormat& format, const std::atomic<bool>& stops);

class InputScan {
 public:
  // Starts the thread. Borrows `fd`, which must be a regular file.
  InputScan(int fd, const RowFormat& format);
  ~InputScan();
  InputScan(const InputScan&) = delete;
  InputScan& operator=(const InputScan&) = delete;

  // Returns the result once the input has been read.
  std::optional<JobInput> result() const;

 private:
  std::atomic<bool> stops_{false};
  mutable std::mutex mutex_;
  std::optional<JobInput> result_;
  std::thread thread_;
};

}  // namespace vllm::app
