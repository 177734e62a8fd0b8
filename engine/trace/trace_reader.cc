#include "engine/trace/trace_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/config/errors.h"

namespace vllm {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr size_t kMaxVersionDigits = 4;
constexpr size_t kChecksumBytes = 4;

}  // namespace

TraceSource TraceBytes(std::string_view bytes) {
  return [bytes](char* data, size_t size) mutable {
    const size_t count = std::min(size, bytes.size());
    std::copy_n(bytes.begin(), count, data);
    bytes.remove_prefix(count);
    return count;
  };
}

TraceReader::TraceReader(TraceSource source) : source_(std::move(source)) {
  Fill(kTraceMagic.size() + kMaxVersionDigits + 1);
  const std::string_view head(buffer_);
  if (head.empty()) throw ModelError("is empty");
  if (!head.starts_with(kTraceMagic)) throw ModelError("is not a trace of vllmcli");
  const size_t end = head.find('\n');
  const std::string_view digits = head.substr(kTraceMagic.size(), end == head.npos ? end : end - kTraceMagic.size());
  if (end == head.npos || digits != std::to_string(kTraceVersion)) {
    const bool is_number = end != head.npos && !digits.empty() && digits.find_first_not_of("0123456789") == head.npos;
    throw ModelError(is_number ? "has version " + std::string(digits) + " of the format (this program reads version " +
                                     std::to_string(kTraceVersion) + ")"
                               : "is not a trace of vllmcli");
  }
  position_ = end + 1;
  offset_ = position_;
  TraceRecord record;
  if (!NextRecord(record)) throw ModelError("ends before the end of its first record");
  if (record.type != TraceRecordType::kBegin) throw ModelError("does not begin with the scheduler's configuration");
  begin_ = std::move(record.begin);
}

bool TraceReader::Next(TraceRecord& record) {
  if (!NextRecord(record)) return false;
  if (record.type == TraceRecordType::kBegin) {
    throw ModelError("record " + std::to_string(num_records_) + ": a second configuration");
  }
  return true;
}

bool TraceReader::Fill(size_t size) {
  while (available() < size) {
    if (position_ > 0) {
      buffer_.erase(0, position_);
      position_ = 0;
    }
    const size_t old_size = buffer_.size();
    buffer_.resize(old_size + kReadBytes);
    const size_t count = source_(buffer_.data() + old_size, kReadBytes);
    buffer_.resize(old_size + count);
    if (count == 0) return false;
  }
  return true;
}

bool TraceReader::NextRecord(TraceRecord& record) {
  const auto fail = [&](const std::string& why) {
    throw ModelError("record " + std::to_string(num_records_ + 1) + " at byte " + std::to_string(offset_) + ": " + why);
  };
  size_t length = 0;
  size_t header_bytes = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (!Fill(header_bytes + 1)) {
      num_torn_bytes_ = available();
      return false;
    }
    const auto byte = static_cast<unsigned char>(buffer_[position_ + header_bytes]);
    ++header_bytes;
    length |= static_cast<size_t>(byte & 0x7f) << shift;
    if (length > kMaxRecordBytes || shift > 28) fail("length out of range");
    if (byte < 0x80) break;
  }
  const size_t record_bytes = header_bytes + length + kChecksumBytes;
  if (!Fill(record_bytes)) {
    num_torn_bytes_ = available();
    return false;
  }
  const std::string_view payload = std::string_view(buffer_).substr(position_ + header_bytes, length);
  uint32_t checksum = 0;
  for (size_t i = 0; i < kChecksumBytes; ++i) {
    const auto byte = static_cast<unsigned char>(buffer_[position_ + header_bytes + length + i]);
    checksum |= uint32_t{byte} << (8 * i);
  }
  if (checksum != TraceChecksum(payload)) fail("wrong checksum");
  try {
    DecodeTraceRecord(payload, record);
  } catch (const ModelError& error) {
    fail(error.what());
  }
  position_ += record_bytes;
  offset_ += record_bytes;
  ++num_records_;
  return true;
}

}  // namespace vllm
