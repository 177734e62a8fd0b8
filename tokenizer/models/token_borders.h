// Places of a word that no token of a byte-level vocabulary reaches across, so that no merge crosses them and the parts
// can be merged each by itself; merging costs more than their lengths. Only places between two characters outside ASCII
// are looked at: there a vocabulary knows few of the pairs that texts have. Read-only after construction, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/models/vocabulary.h"

namespace vllm {

class TokenBorders {
 public:
  // O(bytes of the tokens).
  explicit TokenBorders(const Vocabulary& vocabulary);

  // End of the part of `word` that starts at `start`. REQUIRES: start < word.size().
  size_t PartEnd(std::string_view word, size_t start) const;

 private:
  static constexpr int kFilterBits = 19;

  void AddToken(std::string_view bytes);

  static size_t Bit(uint64_t pair) { return static_cast<size_t>(pair * 0x9E3779B97F4A7C15ULL >> (64 - kFilterBits)); }
  static size_t Row(char last, char lead) {
    return static_cast<size_t>(static_cast<unsigned char>(last)) << 8 | static_cast<unsigned char>(lead);
  }

  std::vector<uint64_t> pairs_;  // a bit by the hash of two characters that stand together in a token
  std::array<uint64_t, 1024>
      partial_;  // by the bytes at the border, where a token has only a part of a character there
};

}  // namespace vllm
