// TraceReader: reads the records of a trace (trace_format.h) one after another, from a file, a pipe or memory. Treats
// the bytes as untrusted: holds at most one record, and allocates memory only for bytes that it has read. Owned by its
// user; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "engine/trace/trace_format.h"

namespace vllm {

// Reads up to `size` bytes to `data`. Returns the number of bytes, 0 at the end. May throw.
using TraceSource = std::function<size_t(char* data, size_t size)>;

// Returns a source that reads borrowed bytes.
TraceSource TraceBytes(std::string_view bytes);

class TraceReader {
 public:
  // Reads the header and the first record. Throws ModelError if the bytes are not a trace of this version, or end
  // before the end of the first record.
  explicit TraceReader(TraceSource source);

  const TraceBegin& begin() const { return begin_; }

  // Reads the next record and decodes it into `record`. Returns false at the end, also if the last record is cut off.
  // Throws ModelError `record <number> at byte <offset>: <why>` if a record is damaged.
  bool Next(TraceRecord& record);

  // After Next has returned false: the number of bytes of a last record that is cut off, or 0.
  size_t num_torn_bytes() const { return num_torn_bytes_; }
  // The number of records that were read, including the first.
  int64_t num_records() const { return num_records_; }

 private:
  // Appends bytes to buffer_ until `size` of them follow position_. Returns false if the source ends before.
  bool Fill(size_t size);
  // Returns the number of bytes that follow position_ in the buffer.
  size_t available() const { return buffer_.size() - position_; }
  bool NextRecord(TraceRecord& record);

  TraceSource source_;
  TraceBegin begin_;
  std::string buffer_;
  size_t position_ = 0;  // the next byte of buffer_ to decode
  uint64_t offset_ = 0;  // of position_ in the trace
  int64_t num_records_ = 0;
  size_t num_torn_bytes_ = 0;
};

}  // namespace vllm
