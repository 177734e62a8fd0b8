// RecordReader: a batch's input as a stream of records (lines, or CSV records whose quoted fields span lines), read
// from a descriptor without ever blocking for more than one read(). Memory is bounded by the longest allowed record.
// Main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "app/batch/csv.h"

namespace vllm {

class RecordReader {
 public:
  enum class Status : uint8_t { kRecord, kTooLong, kNeedInput, kEnd };

  static constexpr size_t kMaxRecordBytes = 64 << 20;

  // `fd` is borrowed. `name` is for errors. `delimiter` 0: a record is a line; else the fields of a record are
  // delimited by it, and a line break in a quoted field does not end the record.
  RecordReader(int fd, std::string name, char delimiter, size_t max_record_bytes = kMaxRecordBytes);

  // The next whole record in the buffer, without its line break; `record` is valid until the next call of any member.
  // kTooLong stands for one record that was skipped. kNeedInput: call Fill first.
  Status Next(std::string_view& record);
  // One read(): call when the descriptor is readable. Throws ResourceError.
  void Fill();

  int64_t line() const { return record_line_; }         // of the last record, from 1
  int64_t bytes_taken() const { return bytes_taken_; }  // by the records so far
  int fd() const { return fd_; }

 private:
  bool EndsRecord(char c);  // takes the next byte of a delimited record

  int fd_;
  std::string name_;
  char delimiter_;  // 0: lines
  CsvScanner csv_;
  size_t max_record_bytes_;
  std::string buffer_;
  size_t begin_ = 0;    // of the next record
  size_t scanned_ = 0;  // no record's end before here
  bool skipping_ = false;
  bool at_end_ = false;
  int64_t next_line_ = 1;
  int64_t lines_inside_ = 0;  // line breaks seen inside the current record
  int64_t record_line_ = 0;
  int64_t bytes_taken_ = 0;
};

}  // namespace vllm
