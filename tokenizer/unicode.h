// Unicode properties of one code point, from Oniguruma's own tables so that the hand-written scanners and the regular
// expressions they stand for agree. Letters and numbers are those of Unicode 16, as in the reference, also where the
// installed Oniguruma is older. The table is built on first use; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace vllm {

enum CharClass : uint8_t {
  kLetter = 1,        // \p{L}
  kNumber = 2,        // \p{N}
  kSpace = 4,         // \s, White_Space
  kPunctuation = 8,   // \p{P} and the ASCII symbols
  kMark = 16,         // \p{M}
  kWord = 32,         // \w with Join_Control, as Rust's regex crate has it
  kNewline = 64,      // \r or \n
  kNfcUnstable = 128  // NFC may change it or something next to it
};

class UnicodeTable {
 public:
  static const UnicodeTable& Get();

  uint8_t ClassOf(char32_t code_point) const {
    return pages_[page_index_[code_point >> kPageBits]][code_point & (kPageSize - 1)];
  }
  bool Is(char32_t code_point, uint8_t classes) const { return (ClassOf(code_point) & classes) != 0; }

 private:
  static constexpr int kPageBits = 8;
  static constexpr int kPageSize = 1 << kPageBits;
  static constexpr int kNumPages = 0x110000 >> kPageBits;
  using Page = std::array<uint8_t, kPageSize>;

  UnicodeTable();
  static void AddProperty(const char* name, uint8_t bit, std::vector<uint8_t>& flat);

  std::array<uint16_t, kNumPages> page_index_{};
  std::vector<Page> pages_;
};

}  // namespace vllm
