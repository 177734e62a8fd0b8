// RecordSource: the interface of the inputs of a batch, which give one record per row: RecordReader and TextFiles.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vllm::app {

class RecordSource {
 public:
  enum class Status : uint8_t { kRecord, kTooLong, kNeedInput, kUnreadable, kEnd };

  static constexpr size_t kMaxRecordBytes = 64 << 20;

  virtual ~RecordSource() = default;

  // Gets the next record. `record` is valid until the next call of Next or Fill. kTooLong and kUnreadable report one
  // record that was skipped. kNeedInput: call Fill first.
  virtual Status Next(std::string_view& record) = 0;
  // Reads once, which blocks unless fd() is readable. Throws ResourceError if reading fails.
  virtual void Fill() = 0;
  // Returns the first line of the last record, from 1, or the number of its file.
  virtual int64_t line() const = 0;
  // Returns the size of all records so far, with their line breaks.
  virtual int64_t bytes_consumed() const = 0;
  // Returns the descriptor to poll before Fill, or -1 if Fill never waits long.
  virtual int fd() const = 0;
  // Returns the name of the last record, such as the path of its file, or why it is unreadable; "" if it has none.
  virtual std::string name() const { return ""; }
};

}  // namespace vllm::app
