// GgufCursor: reads the little-endian numbers and strings of a GGUF header from front to back. It never reads past the
// end, and it returns strings as views instead of copies. Used by one thread for one parse.
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
  // Borrows `bytes`. `what` starts every error message: "gguf file /models/x.gguf".
  GgufCursor(std::span<const std::byte> bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  uint64_t position() const { return position_; }
  uint64_t remaining() const { return bytes_.size() - position_; }

  // Reads a T. `object` names it in the error message: "number of tensors". Throws ModelError if fewer than sizeof(T)
  // bytes remain.
  template <typename T>
  T Read(std::string_view object) {
    static_assert(std::endian::native == std::endian::little);
    Require(sizeof(T), object);
    T value;
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }
  // Reads a string: a uint64 length, then the bytes. Throws like Read.
  std::string_view ReadString(std::string_view object);
  std::span<const std::byte> ReadBytes(uint64_t count, std::string_view object);

  // Throws ModelError. `object` may contain text from the file, because Fail escapes it.
  [[noreturn]] void Fail(std::string_view object, const std::string& why, std::string hint = "") const;

 private:
  void Require(uint64_t count, std::string_view object) const;

  std::span<const std::byte> bytes_;
  std::string what_;
  uint64_t position_ = 0;
};

}  // namespace vllm
