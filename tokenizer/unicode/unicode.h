// Unicode properties of code points. Most come from Oniguruma's own tables, so that the hand-written word scanners
// agree with the regular expressions that they replace. kNfcUnstable comes from utf8proc. "The reference" is Hugging
// Face `tokenizers`. Letters and numbers are those of Unicode 16, as in the reference, even if the installed Oniguruma
// is older. Any thread; the tables are built on first use.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vllm::tokenizer {

// Calls range(first, last) for each range of code points with an Oniguruma property ("L", "Han", "Age=8.0").
// Throws std::runtime_error if Oniguruma has no such property.
void ForEachRangeOf(const char* property, const std::function<void(char32_t, char32_t)>& range);

// Calls range(first, last) for each range of code points that have a script in Unicode 9. Some components of the
// reference still use the tables of Unicode 9 or of a version close to it. Private use areas have no script.
void ForEachRangeOfUnicode9(const std::function<void(char32_t, char32_t)>& range);

enum CharClass : uint16_t {
  kLetter = 1,         // \p{L}
  kNumber = 2,         // \p{N}
  kSpace = 4,          // \s, White_Space
  kPunctuation = 8,    // \p{P} and the ASCII symbols
  kMark = 16,          // \p{M}
  kWord = 32,          // \w with Join_Control, as in Rust's regex crate
  kNewline = 64,       // \r or \n
  kNfcUnstable = 128,  // NFC may change the character or combine it with the previous character
  // kRegexMark to kLowerCase follow Unicode 16, like the reference's regular expressions. kMark and kPunctuation follow
  // the older tables of the reference's other components.
  kRegexMark = 256,         // \p{M}
  kRegexPunctuation = 512,  // \p{P}
  kRegexSymbol = 1024,      // \p{S}
  kUpperCase = 2048,        // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]: uppercase, marks and letters without case
  kLowerCase = 4096,        // [\p{Ll}\p{Lm}\p{Lo}\p{M}]
  kUnicode9 = 8192,         // has a script in Unicode 9; normalization leaves newer code points unchanged
};

class UnicodeTable {
 public:
  static const UnicodeTable& Get();

  uint16_t ClassOf(char32_t code_point) const {
    return pages_[page_index_[code_point >> kPageBits]][code_point & (kPageSize - 1)];
  }
  bool Is(char32_t code_point, uint16_t classes) const { return (ClassOf(code_point) & classes) != 0; }

 private:
  static constexpr int kPageBits = 8;
  static constexpr int kPageSize = 1 << kPageBits;
  static constexpr int kNumPages = 0x110000 >> kPageBits;
  using Page = std::array<uint16_t, kPageSize>;

  UnicodeTable();

  std::array<uint16_t, kNumPages> page_index_{};
  std::vector<Page> pages_;
};

}  // namespace vllm::tokenizer
