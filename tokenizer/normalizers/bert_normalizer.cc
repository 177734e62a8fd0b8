#include "tokenizer/normalizers/bert_normalizer.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tokenizer/unicode/unicode.h"
#include "tokenizer/unicode/unicode_text.h"

namespace vllm::tokenizer {
namespace {

// The accents and control characters as Hugging Face `tokenizers` defines them with the tables of Unicode 8.
class BertTable {
 public:
  static const BertTable& Get() {
    static const BertTable table;
    return table;
  }

  bool IsAccent(char32_t c) const { return (flags_[c] & kAccent) != 0; }
  bool IsOther(char32_t c) const { return (flags_[c] & kOther) != 0; }

 private:
  static constexpr uint8_t kAccent = 1;
  static constexpr uint8_t kOther = 2;
  static constexpr uint8_t kKnown = 4;

  BertTable() : flags_(0x110000, 0) {
    const auto add = [this](uint8_t flag) {
      return [this, flag](char32_t first, char32_t last) {
        for (char32_t c = first; c <= last; ++c) flags_[c] |= flag;
      };
    };
    ForEachRangeOfUnicode9(add(kKnown));
    ForEachRangeOf("Co", add(kKnown));
    ForEachRangeOf("Mn", add(kAccent));
    for (const char* property : {"Cc", "Cf", "Co"}) ForEachRangeOf(property, add(kOther));
    for (uint8_t& flags : flags_) {
      if ((flags & kKnown) == 0) flags = 0;
    }
    // The tables of Unicode 8 lack the accents that Unicode 9 added.
    constexpr char32_t kNewer[][2] = {{0x8D4, 0x8E2},     {0x1885, 0x1886},   {0x1DFB, 0x1DFB},   {0xA8C5, 0xA8C5},
                                      {0xA9BD, 0xA9BD},   {0x111C9, 0x111C9}, {0x1123E, 0x1123E}, {0x11438, 0x11446},
                                      {0x11C30, 0x11C3F}, {0x11C92, 0x11CB6}, {0x1E000, 0x1E02A}, {0x1E944, 0x1E94A}};
    for (const auto& [first, last] : kNewer) std::fill(&flags_[first], &flags_[last] + 1, uint8_t{0});
    flags_[0x1734] |= kAccent;  // was a nonspacing mark in Unicode 8
  }

  std::vector<uint8_t> flags_;
};

}  // namespace

bool IsBertChinese(char32_t c) {
  // Hugging Face `tokenizers` has the same gap before U+2B920.
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

BertNormalizer::BertNormalizer(BertNormalizerConfig config) : config_(config) { BertTable::Get(); }

void BertNormalizer::Apply(std::string& text) const {
  const UnicodeTable& table = UnicodeTable::Get();
  const BertTable& bert_table = BertTable::Get();
  if (config_.clean_text || config_.handle_chinese_chars) {
    ForEachCharacter(text, [&](char32_t c, std::string& out) {
      if (config_.clean_text) {
        const bool line = c == '\t' || c == '\n' || c == '\r';
        if (c == 0 || c == 0xFFFD || (!line && bert_table.IsOther(c))) return;
        if (table.Is(c, kSpace)) c = ' ';
      }
      const bool chinese = config_.handle_chinese_chars && IsBertChinese(c);
      if (chinese) out += ' ';
      AppendCodePoint(c, out);
      if (chinese) out += ' ';
    });
  }
  if (config_.strip_accents) {
    NormalizeUnicode(UnicodeForm::kNfd, text);
    ForEachCharacter(text, [&bert_table](char32_t c, std::string& out) {
      if (!bert_table.IsAccent(c)) AppendCodePoint(c, out);
    });
  }
  if (config_.lowercase) ForEachCharacter(text, AppendLowercase);
}

}  // namespace vllm::tokenizer
