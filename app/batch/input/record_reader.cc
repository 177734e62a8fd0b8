#include "app/batch/input/record_reader.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "engine/config/errors.h"

namespace vllm::app {

RecordReader::RecordReader(int fd, std::string name, char delimiter, size_t max_record_bytes)
    : fd_(fd), name_(std::move(name)), delimiter_(delimiter), csv_(delimiter), max_record_bytes_(max_record_bytes) {}

bool RecordReader::EndsRecord(char c) {
  if (c == '\n') {
    if (!csv_.in_quotes()) return true;
    ++lines_inside_;
  }
  csv_.Next(c);
  return false;
}

RecordReader::Status RecordReader::Next(std::string_view& record) {
  while (true) {
    bool found = false;
    size_t end = scanned_;
    if (delimiter_ == '\0') {
      const size_t newline = buffer_.find('\n', scanned_);
      found = newline != std::string::npos;
      end = found ? newline : buffer_.size();
    } else {
      while (end < buffer_.size() && !found) {
        found = EndsRecord(buffer_[end]);
        if (!found) ++end;
      }
    }
    scanned_ = end;
    const bool is_last = !found && at_end_ && end > begin_;
    if (!found && !is_last) {
      if (at_end_) {
        if (!skipping_) return Status::kEnd;
        // The input ended inside a record that is too long.
        skipping_ = false;
        record_line_ = next_line_;
        return Status::kTooLong;
      }
      if (end - begin_ > max_record_bytes_ || skipping_) {
        skipping_ = true;
        bytes_consumed_ += static_cast<int64_t>(end - begin_);
        begin_ = scanned_ = 0;
        buffer_.clear();
      } else if (begin_ > 0) {
        buffer_.erase(0, begin_);
        scanned_ -= begin_;
        begin_ = 0;
      }
      return Status::kNeedInput;
    }
    const size_t length = end - begin_;
    record = std::string_view(buffer_).substr(begin_, length);
    begin_ = scanned_ = found ? end + 1 : end;
    record_line_ = next_line_;
    next_line_ += 1 + lines_inside_;
    lines_inside_ = 0;
    csv_.Reset();
    bytes_consumed_ += static_cast<int64_t>(length) + (found ? 1 : 0);
    const bool too_long = skipping_ || length > max_record_bytes_;
    skipping_ = false;
    if (too_long) return Status::kTooLong;
    if (!record.empty() && record.back() == '\r') record.remove_suffix(1);
    return Status::kRecord;
  }
}

void RecordReader::Fill() {
  constexpr size_t kReadBytes = 1 << 16;
  const size_t old_size = buffer_.size();
  buffer_.resize(old_size + kReadBytes);
  const ssize_t num_read = read(fd_, buffer_.data() + old_size, kReadBytes);
  const int error = errno;
  buffer_.resize(old_size + static_cast<size_t>(num_read > 0 ? num_read : 0));
  if (num_read == 0) at_end_ = true;
  if (num_read < 0 && error != EINTR && error != EAGAIN) {
    throw ResourceError("reading " + name_ + ": " + std::strerror(error));
  }
}

}  // namespace vllm::app
