#include "app/batch/input_scan.h"

#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "app/batch/table/csv.h"

namespace vllm::app {
namespace {

// Counts the records that are not blank.
class RowCounter {
 public:
  explicit RowCounter(char delimiter) : delimiter_(delimiter), csv_(delimiter) {}

  void Add(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n' && !(delimiter_ != '\0' && csv_.in_quotes())) {
        EndRecord();
        continue;
      }
      if (c != ' ' && c != '\t' && c != '\r') is_blank_ = false;
      if (delimiter_ != '\0') csv_.Next(c);
    }
  }
  int64_t NumRows() {
    EndRecord();
    // The first record of a table is its header.
    return delimiter_ != '\0' && num_records_ > 0 ? num_records_ - 1 : num_records_;
  }

 private:
  void EndRecord() {
    num_records_ += is_blank_ ? 0 : 1;
    is_blank_ = true;
    csv_.Reset();
  }

  char delimiter_;
  CsvScanner csv_;
  int64_t num_records_ = 0;
  bool is_blank_ = true;
};

}  // namespace

std::optional<JobInput> ScanInput(int fd, const RowFormat& format, const std::atomic<bool>& stops) {
  std::string buffer(size_t{1} << 18, '\0');
  Hash64Stream hash;
  RowCounter counter(format.delimiter);
  JobInput input;
  while (!stops.load(std::memory_order_relaxed)) {
    const ssize_t count = pread(fd, buffer.data(), buffer.size(), input.num_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) {
      input.digest = hash.value();
      input.num_rows = counter.NumRows();
      return input;
    }
    const std::string_view bytes(buffer.data(), static_cast<size_t>(count));
    hash.Add(bytes);
    counter.Add(bytes);
    input.num_bytes += count;
  }
  return std::nullopt;
}

InputScan::InputScan(int fd, const RowFormat& format)
    : thread_([this, fd, format] {
        const std::optional<JobInput> input = ScanInput(fd, format, stops_);
        const std::lock_guard lock(mutex_);
        result_ = input;
      }) {}

InputScan::~InputScan() {
  stops_ = true;
  thread_.join();
}

std::optional<JobInput> InputScan::result() const {
  const std::lock_guard lock(mutex_);
  return result_;
}

}  // namespace vllm::app
