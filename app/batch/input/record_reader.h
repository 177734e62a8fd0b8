// RecordReader: a RecordSource that splits a stream into records, which are lines, or CSV records whose quoted fields
// may span lines. Reads from a descriptor and never blocks for more than one read(). The descriptor may be a FIFO or a
// device, which is read as data arrives. Memory is bounded by the longest allowed record. Owned by a command; main
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/batch/input/record_source.h"
#include "app/batch/table/csv.h"

namespace vllm::app {

class RecordReader : public RecordSource {
 public:
  // Borrows `fd`. `name` appears in errors. If `delimiter` is 0, a record is a line. Otherwise it is a CSV record with
  // this delimiter, and a line break in a quoted field does not end it.
  RecordReader(int fd, std::string name, char delimiter, size_t max_record_bytes = kMaxRecordBytes);

  // Gets the next whole record in the buffer, without its line break.
  Status Next(std::string_view& record) override;
  void Fill() override;
  int64_t line() const override { return record_line_; }
  int64_t bytes_consumed() const override { return bytes_consumed_; }
  int fd() const override { return fd_; }

 private:
  // Consumes the next byte of a CSV record. Returns true if it is the line break that ends the record.
  bool EndsRecord(char c);

  int fd_;
  std::string name_;
  char delimiter_;  // 0: lines
  CsvScanner csv_;
  size_t max_record_bytes_;
  std::string buffer_;
  size_t begin_ = 0;    // offset of the next record
  size_t scanned_ = 0;  // no record ends between begin_ and this offset
  bool skipping_ = false;
  bool at_end_ = false;
  int64_t next_line_ = 1;
  int64_t lines_inside_ = 0;  // line breaks seen inside the current record
  int64_t record_line_ = 0;
  int64_t bytes_consumed_ = 0;
};

}  // namespace vllm::app
