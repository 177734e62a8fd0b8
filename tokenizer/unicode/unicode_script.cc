#include "tokenizer/unicode/unicode_script.h"

#include <string_view>

#include "tokenizer/unicode/unicode.h"

namespace vllm::tokenizer {
namespace {

// The scripts of Unicode 9. Hugging Face `tokenizers` ignores newer scripts. The first three share a number.
constexpr const char* kScripts[] = {"Han",
                                    "Hiragana",
                                    "Katakana",
                                    "Common",
                                    "Inherited",
                                    "Latin",
                                    "Greek",
                                    "Cyrillic",
                                    "Armenian",
                                    "Hebrew",
                                    "Arabic",
                                    "Syriac",
                                    "Thaana",
                                    "Devanagari",
                                    "Bengali",
                                    "Gurmukhi",
                                    "Gujarati",
                                    "Oriya",
                                    "Tamil",
                                    "Telugu",
                                    "Kannada",
                                    "Malayalam",
                                    "Sinhala",
                                    "Thai",
                                    "Lao",
                                    "Tibetan",
                                    "Myanmar",
                                    "Georgian",
                                    "Hangul",
                                    "Ethiopic",
                                    "Cherokee",
                                    "Canadian_Aboriginal",
                                    "Ogham",
                                    "Runic",
                                    "Khmer",
                                    "Mongolian",
                                    "Bopomofo",
                                    "Yi",
                                    "Old_Italic",
                                    "Gothic",
                                    "Deseret",
                                    "Tagalog",
                                    "Hanunoo",
                                    "Buhid",
                                    "Tagbanwa",
                                    "Limbu",
                                    "Tai_Le",
                                    "Linear_B",
                                    "Ugaritic",
                                    "Shavian",
                                    "Osmanya",
                                    "Cypriot",
                                    "Braille",
                                    "Buginese",
                                    "Coptic",
                                    "New_Tai_Lue",
                                    "Glagolitic",
                                    "Tifinagh",
                                    "Syloti_Nagri",
                                    "Old_Persian",
                                    "Kharoshthi",
                                    "Balinese",
                                    "Cuneiform",
                                    "Phoenician",
                                    "Phags_Pa",
                                    "Nko",
                                    "Sundanese",
                                    "Lepcha",
                                    "Ol_Chiki",
                                    "Vai",
                                    "Saurashtra",
                                    "Kayah_Li",
                                    "Rejang",
                                    "Lycian",
                                    "Carian",
                                    "Lydian",
                                    "Cham",
                                    "Tai_Tham",
                                    "Tai_Viet",
                                    "Avestan",
                                    "Egyptian_Hieroglyphs",
                                    "Samaritan",
                                    "Lisu",
                                    "Bamum",
                                    "Javanese",
                                    "Meetei_Mayek",
                                    "Imperial_Aramaic",
                                    "Old_South_Arabian",
                                    "Inscriptional_Parthian",
                                    "Inscriptional_Pahlavi",
                                    "Old_Turkic",
                                    "Kaithi",
                                    "Batak",
                                    "Brahmi",
                                    "Mandaic",
                                    "Chakma",
                                    "Meroitic_Cursive",
                                    "Meroitic_Hieroglyphs",
                                    "Miao",
                                    "Sharada",
                                    "Sora_Sompeng",
                                    "Takri",
                                    "Caucasian_Albanian",
                                    "Bassa_Vah",
                                    "Duployan",
                                    "Elbasan",
                                    "Grantha",
                                    "Khojki",
                                    "Khudawadi",
                                    "Linear_A",
                                    "Mahajani",
                                    "Manichaean",
                                    "Mende_Kikakui",
                                    "Modi",
                                    "Mro",
                                    "Old_North_Arabian",
                                    "Nabataean",
                                    "Old_Permic",
                                    "Pahawh_Hmong",
                                    "Palmyrene",
                                    "Pau_Cin_Hau",
                                    "Psalter_Pahlavi",
                                    "Siddham",
                                    "Tirhuta",
                                    "Warang_Citi",
                                    "Ahom",
                                    "Anatolian_Hieroglyphs",
                                    "Hatran",
                                    "Multani",
                                    "Old_Hungarian",
                                    "SignWriting",
                                    "Adlam",
                                    "Bhaiksuki",
                                    "Marchen",
                                    "Newa",
                                    "Osage",
                                    "Tangut"};
constexpr uint8_t kHan = 1;
constexpr uint8_t kFirstOther = 4;
constexpr size_t kCommon = 3;

}  // namespace

const ScriptTable& ScriptTable::Get() {
  static const ScriptTable table;
  return table;
}

ScriptTable::ScriptTable() : scripts_(0x110000, kNoScript) {
  std::vector<bool> known(0x110000, false);
  ForEachRangeOfUnicode9([&](char32_t first, char32_t last) {
    for (char32_t c = first; c <= last; ++c) known[c] = true;
  });
  uint8_t number = kFirstOther;
  uint8_t common = 0;
  uint8_t devanagari = 0;
  for (size_t i = 0; i < std::size(kScripts); ++i) {
    const uint8_t script = i < kCommon ? kHan : number++;
    if (i == kCommon) common = script;
    if (std::string_view(kScripts[i]) == "Devanagari") devanagari = script;
    ForEachRangeOf(kScripts[i], [&](char32_t first, char32_t last) {
      for (char32_t c = first; c <= last; ++c) {
        if (known[c]) scripts_[c] = script;
      }
    });
  }
  // Characters whose script has changed since Unicode 9, and exceptions of Hugging Face `tokenizers`.
  scripts_[0x589] = common;
  scripts_[0x61C] = common;
  scripts_[0x953] = scripts_[0x954] = devanagari;
  scripts_[0x30FC] = kHan;
  scripts_[' '] = kNoScript;
}

}  // namespace vllm::tokenizer
