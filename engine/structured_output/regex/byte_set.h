// ByteSet: a set of byte values. A plain value; any thread.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace vllm {

class ByteSet {
 public:
  ByteSet() = default;
  static ByteSet All() {
    ByteSet set;
    set.AddRange(0x00, 0xFF);
    return set;
  }
  static ByteSet Range(uint8_t first, uint8_t last) {
    ByteSet set;
    set.AddRange(first, last);
    return set;
  }

  void Add(uint8_t byte) { words_[byte >> 6] |= uint64_t{1} << (byte & 63); }
  void AddRange(uint8_t first, uint8_t last) {
    for (unsigned byte = first; byte <= last; ++byte) Add(static_cast<uint8_t>(byte));
  }
  bool Contains(uint8_t byte) const { return (words_[byte >> 6] >> (byte & 63) & 1) != 0; }
  bool empty() const { return (words_[0] | words_[1] | words_[2] | words_[3]) == 0; }
  size_t size() const {
    size_t size = 0;
    for (const uint64_t word : words_) size += static_cast<size_t>(std::popcount(word));
    return size;
  }

  ByteSet& operator|=(const ByteSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  ByteSet& operator&=(const ByteSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  bool operator==(const ByteSet&) const = default;
  const std::array<uint64_t, 4>& words() const { return words_; }

 private:
  std::array<uint64_t, 4> words_{};
};

}  // namespace vllm
