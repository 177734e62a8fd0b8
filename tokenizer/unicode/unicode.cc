#include "tokenizer/unicode/unicode.h"

#include <oniguruma.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <stdexcept>

#include "tokenizer/unicode/oniguruma.h"
#include "tokenizer/unicode/unicode_9.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Letters and numbers that Unicode 15, 15.1 and 16 added: the reference knows them, older releases of Oniguruma do not.
constexpr Range kNewerLetters[] = {
    {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},   {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D4A, 0x10D65},
    {0x10D6F, 0x10D85}, {0x10EC2, 0x10EC4}, {0x1123F, 0x11240}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113B7}, {0x113D1, 0x113D1}, {0x113D3, 0x113D3},
    {0x11BC0, 0x11BE0}, {0x11F02, 0x11F02}, {0x11F04, 0x11F10}, {0x11F12, 0x11F33}, {0x1342F, 0x1342F},
    {0x13441, 0x13446}, {0x13460, 0x143FA}, {0x16100, 0x1611D}, {0x16D40, 0x16D6C}, {0x18CFF, 0x18CFF},
    {0x1B132, 0x1B132}, {0x1B155, 0x1B155}, {0x1DF25, 0x1DF2A}, {0x1E030, 0x1E06D}, {0x1E4D0, 0x1E4EB},
    {0x1E5D0, 0x1E5ED}, {0x1E5F0, 0x1E5F0}, {0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF}};
constexpr Range kNewerNumbers[] = {{0x10D40, 0x10D49}, {0x116D0, 0x116E3}, {0x11BF0, 0x11BF9}, {0x11F50, 0x11F59},
                                   {0x16130, 0x16139}, {0x16D70, 0x16D79}, {0x1CCF0, 0x1CCF9}, {0x1D2C0, 0x1D2D3},
                                   {0x1E4F0, 0x1E4F9}, {0x1E5F1, 0x1E5FA}};
// Likewise for the properties that split words by case, marks, punctuation and symbols.
constexpr Range kNewerCapitals[] = {
    {0x1C89, 0x1C89}, {0xA7CB, 0xA7CC}, {0xA7DA, 0xA7DA}, {0xA7DC, 0xA7DC}, {0x10D50, 0x10D65}};
constexpr Range kNewerSmallLetters[] = {
    {0x1C8A, 0x1C8A}, {0xA7CD, 0xA7CD}, {0xA7DB, 0xA7DB}, {0x10D70, 0x10D85}, {0x1DF25, 0x1DF2A}};
constexpr Range kNewerMarks[] = {{0x897, 0x897},     {0xCF3, 0xCF3},     {0xECE, 0xECE},     {0x10D69, 0x10D6D},
                                 {0x10EFC, 0x10EFF}, {0x11241, 0x11241}, {0x113B8, 0x113C0}, {0x113C2, 0x113C2},
                                 {0x113C5, 0x113C5}, {0x113C7, 0x113CA}, {0x113CC, 0x113D0}, {0x113D2, 0x113D2},
                                 {0x113E1, 0x113E2}, {0x11F00, 0x11F01}, {0x11F03, 0x11F03}, {0x11F34, 0x11F3A},
                                 {0x11F3E, 0x11F42}, {0x11F5A, 0x11F5A}, {0x13440, 0x13440}, {0x13447, 0x13455},
                                 {0x1611E, 0x1612F}, {0x1E08F, 0x1E08F}, {0x1E4EC, 0x1E4EF}, {0x1E5EE, 0x1E5EF}};
constexpr Range kNewerPunctuation[] = {{0x1B4E, 0x1B4F},   {0x1B7F, 0x1B7F},   {0x10D6E, 0x10D6E}, {0x113D4, 0x113D5},
                                       {0x113D7, 0x113D8}, {0x11B00, 0x11B09}, {0x11BE1, 0x11BE1}, {0x11F43, 0x11F4F},
                                       {0x16D6D, 0x16D6F}, {0x1E5FF, 0x1E5FF}};
constexpr Range kNewerSymbols[] = {
    {0x2427, 0x2429},   {0x2FFC, 0x2FFF},   {0x31E4, 0x31E5},   {0x31EF, 0x31EF},   {0x10D8E, 0x10D8F},
    {0x1CC00, 0x1CCEF}, {0x1CD00, 0x1CEB3}, {0x1F6DC, 0x1F6DC}, {0x1F774, 0x1F776}, {0x1F77B, 0x1F77F},
    {0x1F7D9, 0x1F7D9}, {0x1F8B2, 0x1F8BB}, {0x1F8C0, 0x1F8C1}, {0x1FA75, 0x1FA77}, {0x1FA87, 0x1FA89},
    {0x1FA8F, 0x1FA8F}, {0x1FAAD, 0x1FAAF}, {0x1FABB, 0x1FABF}, {0x1FAC6, 0x1FAC6}, {0x1FACE, 0x1FACF},
    {0x1FADA, 0x1FADC}, {0x1FADF, 0x1FADF}, {0x1FAE8, 0x1FAE9}, {0x1FAF7, 0x1FAF8}, {0x1FBCB, 0x1FBEF}};

// What \w has gained in Rust since.
constexpr Range kNewerWordCharacters[] = {
    {0x897, 0x897},     {0xCF3, 0xCF3},     {0xECE, 0xECE},     {0x1C89, 0x1C8A},   {0xA7CB, 0xA7CD},
    {0xA7DA, 0xA7DC},   {0x105C0, 0x105F3}, {0x10D40, 0x10D65}, {0x10D69, 0x10D6D}, {0x10D6F, 0x10D85},
    {0x10EC2, 0x10EC4}, {0x10EFC, 0x10EFF}, {0x1123F, 0x11241}, {0x11380, 0x11389}, {0x1138B, 0x1138B},
    {0x1138E, 0x1138E}, {0x11390, 0x113B5}, {0x113B7, 0x113C0}, {0x113C2, 0x113C2}, {0x113C5, 0x113C5},
    {0x113C7, 0x113CA}, {0x113CC, 0x113D3}, {0x113E1, 0x113E2}, {0x116D0, 0x116E3}, {0x11BC0, 0x11BE0},
    {0x11BF0, 0x11BF9}, {0x11F00, 0x11F10}, {0x11F12, 0x11F3A}, {0x11F3E, 0x11F42}, {0x11F50, 0x11F5A},
    {0x1342F, 0x1342F}, {0x13440, 0x13455}, {0x13460, 0x143FA}, {0x16100, 0x16139}, {0x16D40, 0x16D6C},
    {0x16D70, 0x16D79}, {0x18CFF, 0x18CFF}, {0x1B132, 0x1B132}, {0x1B155, 0x1B155}, {0x1CCF0, 0x1CCF9},
    {0x1DF25, 0x1DF2A}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F}, {0x1E4D0, 0x1E4F9}, {0x1E5D0, 0x1E5FA},
    {0x2B739, 0x2B739}, {0x2EBF0, 0x2EE5D}, {0x31350, 0x323AF}};
// Punctuation of Unicode 9 that the version before did not have.
constexpr Range kUnicode9Punctuation[] = {{0x2E43, 0x2E44},   {0x1144B, 0x1144F}, {0x1145B, 0x1145B},
                                          {0x1145D, 0x1145D}, {0x11660, 0x1166C}, {0x11C41, 0x11C45},
                                          {0x11C70, 0x11C71}, {0x1E95E, 0x1E95F}};

void AddRanges(std::span<const Range> ranges, uint16_t bit, std::vector<uint16_t>& flat) {
  for (const Range& range : ranges) {
    for (char32_t c = range.first; c <= range.last; ++c) flat[c] |= bit;
  }
}

// Characters that NFC changes or that may combine with what stands before them: marks, second halves of compositions,
// singletons. A text without any is in NFC already.
bool IsNfcUnstable(utf8proc_int32_t code_point) {
  if (code_point >= 0x1160 && code_point <= 0x11FF) return true;   // Hangul vowels and tails
  if (code_point >= 0xAC00 && code_point <= 0xD7A3) return false;  // Hangul syllables
  const utf8proc_property_t* property = utf8proc_get_property(code_point);
  if (property->combining_class != 0) return true;
  // utf8proc marks first halves of compositions by indices below 0x8000.
  if (property->comb_index != UINT16_MAX && property->comb_index >= 0x8000) return true;
  if (property->decomp_seqindex == UINT16_MAX || property->decomp_type != 0) return false;
  std::string text;
  AppendCodePoint(static_cast<char32_t>(code_point), text);
  utf8proc_uint8_t* normalized = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &normalized, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const bool changes =
      size != static_cast<utf8proc_ssize_t>(text.size()) || std::memcmp(normalized, text.data(), text.size()) != 0;
  std::free(normalized);
  return changes;
}

void AddProperty(const char* name, uint16_t bit, std::vector<uint16_t>& flat) {
  ForEachRangeOf(name, [&](char32_t first, char32_t last) {
    for (char32_t c = first; c <= last; ++c) flat[c] |= bit;
  });
}

// Marks and punctuation by themselves are those of Unicode 9 and 8 in the reference.
void KeepOlderClasses(std::vector<uint16_t>& flat) {
  ForEachRangeOfUnicode9([&flat](char32_t first, char32_t last) {
    for (char32_t c = first; c <= last; ++c) flat[c] |= kUnicode9;
  });
  for (size_t c = 0; c < flat.size(); ++c) {
    if ((flat[c] & kUnicode9) == 0) flat[c] &= static_cast<uint16_t>(~(kMark | kPunctuation));
  }
  for (const Range& range : kUnicode9Punctuation) {
    for (char32_t c = range.first; c <= range.last; ++c) flat[c] &= static_cast<uint16_t>(~kPunctuation);
  }
  flat[0x1CF2] |= kMark;
  flat[0x1CF3] |= kMark;
  flat[0x111C9] &= static_cast<uint16_t>(~kMark);
  flat[0x111C9] |= kPunctuation;
  flat[0x166D] |= kPunctuation;
}

}  // namespace

void ForEachRangeOf(const char* property, const std::function<void(char32_t, char32_t)>& range) {
  InitializeOniguruma();
  auto* name = const_cast<OnigUChar*>(reinterpret_cast<const OnigUChar*>(property));
  const int ctype = ONIG_ENCODING_UTF8->property_name_to_ctype(ONIG_ENCODING_UTF8, name, name + std::strlen(property));
  OnigCodePoint single_byte_limit = 0;
  const OnigCodePoint* ranges = nullptr;
  if (ctype < 0 ||
      ONIG_ENCODING_UTF8->get_ctype_code_range(static_cast<OnigCtype>(ctype), &single_byte_limit, &ranges) != 0) {
    throw std::runtime_error(std::string("reading the unicode property ") + property + ": unknown to oniguruma");
  }
  for (OnigCodePoint i = 0; i < ranges[0]; ++i) {
    const OnigCodePoint last = std::min<OnigCodePoint>(ranges[2 + 2 * i], 0x10FFFF);
    if (ranges[1 + 2 * i] <= last) range(ranges[1 + 2 * i], last);
  }
}

const UnicodeTable& UnicodeTable::Get() {
  static const UnicodeTable table;
  return table;
}

UnicodeTable::UnicodeTable() {
  InitializeOniguruma();
  std::vector<uint16_t> flat(0x110000, 0);
  AddProperty("L", kLetter, flat);
  AddProperty("N", kNumber, flat);
  AddRanges(kNewerLetters, kLetter, flat);
  AddRanges(kNewerNumbers, kNumber, flat);
  AddProperty("M", kRegexMark, flat);
  AddRanges(kNewerMarks, kRegexMark, flat);
  AddProperty("P", kRegexPunctuation, flat);
  AddRanges(kNewerPunctuation, kRegexPunctuation, flat);
  AddProperty("S", kRegexSymbol, flat);
  AddRanges(kNewerSymbols, kRegexSymbol, flat);
  for (const char* property : {"Lu", "Lt"}) AddProperty(property, kUpperCase, flat);
  AddRanges(kNewerCapitals, kUpperCase, flat);
  AddProperty("Ll", kLowerCase, flat);
  AddRanges(kNewerSmallLetters, kLowerCase, flat);
  for (uint16_t& classes : flat) {
    const bool without_case = (classes & kLetter) != 0 && (classes & (kUpperCase | kLowerCase)) == 0;
    if (without_case || (classes & kRegexMark) != 0) classes |= kUpperCase | kLowerCase;
  }
  AddProperty("Space", kSpace, flat);
  AddProperty("P", kPunctuation, flat);
  AddProperty("M", kMark, flat);
  KeepOlderClasses(flat);
  AddProperty("Word", kWord, flat);
  AddRanges(kNewerWordCharacters, kWord, flat);
  flat[0x200C] |= kWord;
  flat[0x200D] |= kWord;
  for (const char c : std::string("$+<=>^`|~")) flat[static_cast<unsigned char>(c)] |= kPunctuation;
  flat['\r'] |= kNewline;
  flat['\n'] |= kNewline;
  for (utf8proc_int32_t c = 0x300; c < 0x110000; ++c) {
    if (IsNfcUnstable(c)) flat[static_cast<size_t>(c)] |= kNfcUnstable;
  }
  std::map<Page, uint16_t> known;
  for (int i = 0; i < kNumPages; ++i) {
    Page page;
    std::copy_n(flat.data() + static_cast<size_t>(i) * kPageSize, kPageSize, page.data());
    const auto [it, is_new] = known.try_emplace(page, static_cast<uint16_t>(pages_.size()));
    if (is_new) pages_.push_back(page);
    page_index_[static_cast<size_t>(i)] = it->second;
  }
}

}  // namespace vllm
