// WireWriter and WireReader: the two directions of one encoding. A function that passes the fields of a value to an
// archive encodes the value with a WireWriter and decodes it with a WireReader, so that both cannot disagree about the
// order of fields. wire.h specifies the messages. Plain values; not thread-safe.
//
// clang-format off
//   bool, uint8 = 1 byte                      bool: 0 or 1
//   integers, floating-point numbers =        little-endian, in their C++ size
//   enum       = uint8                        at most the largest enumerator
//   string     = uint32 byte*                 a count and that many bytes
//   list       = uint32 value*                a count and that many values
//   optional   = bool [value]
//   pair       = value value
// clang-format on
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace vllm {

static_assert(std::endian::native == std::endian::little, "the encoding copies numbers byte by byte");

// A message from another process that does not have the format of wire.h.
class WireError : public std::runtime_error {
 public:
  explicit WireError(const std::string& why) : std::runtime_error("it sent a damaged message: " + why) {}
};

template <typename T>
concept WireNumber = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

class WireWriter {
 public:
  template <WireNumber T>
  void Field(const T& value) {
    Bytes(&value, sizeof(value));
  }
  void Field(const bool& value) { bytes_.push_back(value ? '\1' : '\0'); }
  void Field(const std::string& value) {
    Count(value.size());
    bytes_ += value;
  }
  template <typename T>
  void Field(const std::vector<T>& values) {
    Count(values.size());
    if constexpr (WireNumber<T>) {
      Bytes(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) Field(value);
    }
  }
  template <typename T>
  void Field(const std::optional<T>& value) {
    Field(value.has_value());
    if (value) Field(*value);
  }
  template <typename A, typename B>
  void Field(const std::pair<A, B>& value) {
    Field(value.first);
    Field(value.second);
  }
  template <typename Enum>
  void Field(const Enum& value, Enum /*last*/) {
    Field(static_cast<uint8_t>(value));
  }

  std::string Take() { return std::move(bytes_); }
  size_t size() const { return bytes_.size(); }

 private:
  void Count(size_t count) {
    if (count > std::numeric_limits<uint32_t>::max()) throw std::length_error("a message has a too long field");
    Field(static_cast<uint32_t>(count));
  }
  void Bytes(const void* data, size_t count) {
    if (count > 0) bytes_.append(static_cast<const char*>(data), count);
  }

  std::string bytes_;
};

// Throws WireError if the bytes are not what the fields require. Allocates at most a small multiple of the bytes.
class WireReader {
 public:
  // Borrows `bytes`.
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <WireNumber T>
  void Field(T& value) {
    std::memcpy(&value, Take(sizeof(value)).data(), sizeof(value));
  }
  void Field(bool& value) {
    const uint8_t byte = Byte();
    if (byte > 1) throw WireError("a flag is neither 0 nor 1 (" + std::to_string(byte) + ")");
    value = byte == 1;
  }
  void Field(std::string& value) { value = Take(Count(1)); }
  template <typename T>
  void Field(std::vector<T>& values) {
    if constexpr (WireNumber<T>) {
      const size_t count = Count(sizeof(T));
      values.resize(count);
      if (count > 0) std::memcpy(values.data(), Take(count * sizeof(T)).data(), count * sizeof(T));
    } else {
      const size_t count = Count(1);
      values.clear();
      for (size_t i = 0; i < count; ++i) Field(values.emplace_back());
    }
  }
  template <typename T>
  void Field(std::optional<T>& value) {
    bool has_value = false;
    Field(has_value);
    value.reset();
    if (has_value) Field(value.emplace());
  }
  template <typename A, typename B>
  void Field(std::pair<A, B>& value) {
    Field(value.first);
    Field(value.second);
  }
  template <typename Enum>
  void Field(Enum& value, Enum last) {
    const uint8_t byte = Byte();
    if (byte > static_cast<uint8_t>(last)) throw WireError("unknown value of a field (" + std::to_string(byte) + ")");
    value = static_cast<Enum>(byte);
  }

  bool at_end() const { return rest_.empty(); }
  // Throws WireError if bytes are left.
  void ExpectEnd() const {
    if (!rest_.empty()) throw WireError(std::to_string(rest_.size()) + " bytes follow its end");
  }

 private:
  std::string_view Take(size_t count) {
    if (count > rest_.size()) throw WireError("it is cut off");
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  uint8_t Byte() { return static_cast<uint8_t>(Take(1).front()); }
  // Returns the count of a list whose values have at least `value_bytes` each, which must be left.
  size_t Count(size_t value_bytes) {
    uint32_t count = 0;
    Field(count);
    if (count > rest_.size() / value_bytes) throw WireError("it is cut off");
    return count;
  }

  std::string_view rest_;
};

}  // namespace vllm
