// GgufCursor reads the little-endian numbers and strings of a GGUF header front to back; nothing is read or allocated
// beyond the bytes that are there. Lives for one parse.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace vllm {

class GgufCursor {
 public:
  // `what` opens every message: "gguf file /models/x.gguf".
  GgufCursor(std::span<const std::byte> bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  // `object` names what is being read in the message: "number of tensors". Throws ModelError.
  template <typename T>
  T Read(std::string_view object) {
    static_assert(std::endian::native == std::endian::little);
    Need(sizeof(T), object);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }
  // A string: its length as uint64, then its bytes.
  std::string_view ReadString(std::string_view object);
  std::span<const std::byte> ReadBytes(uint64_t count, std::string_view object);

  // `object` may be text of the file: it is escaped.
  [[noreturn]] void Fail(std::string_view object, const std::string& why) const;

 private:
  void Need(uint64_t count, std::string_view object) const;

  std::span<const std::byte> bytes_;
  std::string what_;
  uint64_t position_ = 0;
};

}  // namespace vllm
