#include "app/terminal/safe_text.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

namespace vllm::app {
namespace {

std::string Safe(std::string_view text) { return std::string(SafeText(text).view()); }

std::string Utf8(uint32_t c) {
  std::string out;
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
  return out;
}

// Returns true if `bytes` contains a control character that a terminal could execute: C0 except \n and \t, DEL or C1
// (U+0080..U+009F). A stray byte 80..C1 or a truncated character counts too, because a terminal may execute 80..9F.
bool HasControl(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    if (byte < 0x80) {
      if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) return true;
      ++i;
    } else if (byte < 0xC2) {
      return true;
    } else {
      const size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      if (i + length > bytes.size()) return true;
      if (byte == 0xC2 && static_cast<unsigned char>(bytes[i + 1]) < 0xA0) return true;
      i += length;
    }
  }
  return false;
}

TEST(SafeTextTest, OrdinaryTextIsUnchanged) {
  EXPECT_EQ(Safe("a\tb\nc \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), "a\tb\nc \xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80");
}

TEST(SafeTextTest, EverySingleByteIsHarmless) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    EXPECT_FALSE(HasControl(Safe(text))) << byte;
    EXPECT_FALSE(HasControl(Safe("x" + text + "[31m"))) << byte;
  }
}

TEST(SafeTextTest, EveryCodePointIsUnchangedOrShownInHexadecimal) {
  for (uint32_t c = 0; c <= 0x10FFFF; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string safe = Safe(Utf8(c));
    if (IsUnsafeCodePoint(c) || IsJoiningCodePoint(c)) {  // a single joiner joins nothing
      ASSERT_EQ(safe.front(), '<') << c;
      ASSERT_EQ(safe.back(), '>') << c;
    } else {
      ASSERT_EQ(safe, Utf8(c)) << c;
    }
    ASSERT_FALSE(HasControl(safe)) << c;
  }
}

TEST(SafeTextTest, ControlCharactersAreShownInHexadecimal) {
  EXPECT_EQ(Safe("\x1b[31mred"), "<1b>[31mred");
  EXPECT_EQ(Safe("\x1b]52;c;QQ==\x07"), "<1b>]52;c;QQ==<07>");
  EXPECT_EQ(Safe("\xC2\x9B"
                 "31m"),
            "<9b>31m");
  EXPECT_EQ(Safe("a\xE2\x80\xAE"
                 "b"),
            "a<202e>b");
  EXPECT_EQ(Safe("\xF3\xA0\x81\x81"), "<e0041>");
  EXPECT_EQ(Safe("\xE2\x80\xA8"), "<2028>");
  EXPECT_EQ(Safe("\r"), "<0d>");
  EXPECT_EQ(Safe("\x7F"), "<7f>");
}

TEST(SafeTextTest, InvisibleCharactersAreShownInHexadecimal) {
  for (const uint32_t c :
       {0xADu,    0x34Fu,   0x115Fu,  0x1160u,  0x17B4u,  0x180Bu, 0x180Eu, 0x200Bu,  0x200Eu,  0x2060u,
        0x2064u,  0x206Fu,  0x3164u,  0xFE00u,  0xFE0Du,  0xFEFFu, 0xFFA0u, 0x1D173u, 0xE0001u, 0xE0020u,
        0xE0041u, 0xE007Fu, 0xE0100u, 0xE01EFu, 0x1BCA0u, 0x200Cu, 0x200Du, 0xFE0Eu,  0xFE0Fu}) {
    char hex[16];
    std::snprintf(hex, sizeof(hex), "<%02x>", c);
    EXPECT_EQ(Safe("a" + Utf8(c) + "b"), std::string("a") + hex + "b");
    EXPECT_EQ(Safe(Utf8(c)), hex);
    EXPECT_EQ(Safe("\n" + Utf8(c)), std::string("\n") + hex);
  }
}

TEST(SafeTextTest, JoinersAreKeptInEmojiAndInScriptsThatUseThem) {
  const std::vector<std::vector<uint32_t>> kept = {
      {0x1F468, 0x200D, 0x1F469, 0x200D, 0x1F467},  // family
      {0x1F9D1, 0x1F3FD, 0x200D, 0x1F4BB},          // technologist with a skin tone
      {0x2764, 0xFE0F, 0x200D, 0x1F525},            // heart on fire
      {0x1F3F3, 0xFE0F, 0x200D, 0x1F308},           // rainbow flag
      {'1', 0xFE0F, 0x20E3},                        // keycap
      {0x2600, 0xFE0E},                             // sun as text
      {0x645, 0x6CC, 0x200C, 0x62E, 0x648},         // Persian
      {0x915, 0x94D, 0x200D, 0x937},
      {0x915, 0x94D, 0x200C, 0x937},  // Devanagari
      {0xD9A, 0xDCA, 0x200D, 0xDBB},  // Sinhala
      {0x995, 0x9CD, 0x200C},         // Bengali
  };
  for (const std::vector<uint32_t>& code_points : kept) {
    std::string text;
    for (const uint32_t c : code_points) text += Utf8(c);
    EXPECT_EQ(Safe(text), text);
  }
}

TEST(SafeTextTest, JoinersAreShownInHexadecimalWhereTheyHideText) {
  const std::string zwj = Utf8(0x200D);
  const std::string zwnj = Utf8(0x200C);
  const std::string emoji = Utf8(0x1F600);
  EXPECT_EQ(Safe(emoji + zwj + zwj + emoji), emoji + zwj + "<200d>" + emoji);
  EXPECT_EQ(Safe(emoji + zwnj), emoji + "<200c>");
  EXPECT_EQ(Safe("1" + zwj), "1<200d>");
  EXPECT_EQ(Safe(emoji + Utf8(0xFE0F) + Utf8(0xFE0F)), emoji + Utf8(0xFE0F) + "<fe0f>");
  EXPECT_EQ(Safe(Utf8(0x915) + zwj + zwnj), Utf8(0x915) + zwj + "<200c>");
  EXPECT_EQ(Safe(Utf8(0x915) + Utf8(0xFE0F)), Utf8(0x915) + "<fe0f>");
  EXPECT_EQ(Safe("\xFF" + zwj), "\xEF\xBF\xBD<200d>");
  EXPECT_EQ(Safe(emoji + "\xE2\x80" + zwj), emoji + "\xEF\xBF\xBD<200d>");
}

TEST(SafeTextTest, SafeLineEscapesLineBreaks) {
  EXPECT_EQ(SafeLine("a\nb\n\x1b").view(), "a\\nb\\n<1b>");
  EXPECT_EQ(SafeLine("plain").view(), "plain");
}

TEST(SafeTextTest, InvalidBytesBecomeReplacementCharacters) {
  EXPECT_EQ(Safe("\x9B"), "\xEF\xBF\xBD");
  EXPECT_EQ(Safe("\xC0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Safe("\xE2\x82"), "\xEF\xBF\xBD");
  EXPECT_EQ(Safe("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(Safe("\xE2\x1b["), "\xEF\xBF\xBD<1b>[");
}

TEST(SafeTextTest, SplittingTheStreamAnywhereChangesNothing) {
  const std::string texts[] = {
      "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\",
      "\xC2\x9B"
      "31m\xE2\x80\xAEx\xF3\xA0\x81\x81",
      "a\xE2\x82\xAC\xF0\x9F\x98\x80\xFF\xC3",
      Utf8(0x1F468) + Utf8(0x200D) + Utf8(0x200D) + "\xE2" + Utf8(0x915) + Utf8(0x200C) + Utf8(0x200B),
      "\x1bP+q\x1b\\\x9D"
      "0;t\x9C"};
  for (const std::string& text : texts) {
    const std::string whole = Safe(text);
    for (size_t i = 0; i <= text.size(); ++i) {
      for (size_t j = i; j <= text.size(); ++j) {
        SafeTextFilter filter;
        SafeText out;
        filter.Feed(text.substr(0, i), out);
        filter.Feed(text.substr(i, j - i), out);
        filter.Feed(text.substr(j), out);
        filter.Flush(out);
        ASSERT_EQ(out.view(), whole) << i << " " << j;
      }
    }
  }
}

TEST(SafeTextTest, RandomBytesInRandomPiecesAreHarmless) {
  std::mt19937 random(7);
  const std::string alphabet = "\x1b[]0;m\x07\x9b\xc2\x80\xe2\x80\xae\xf3\xa0\x81\x7f\r\nab\xff";
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t i = random() % 24; i > 0; --i) text += alphabet[random() % alphabet.size()];
    SafeTextFilter filter;
    SafeText out;
    for (size_t pos = 0; pos < text.size();) {
      const size_t length = 1 + random() % 4;
      filter.Feed(std::string_view(text).substr(pos, length), out);
      pos += length;
    }
    filter.Flush(out);
    ASSERT_FALSE(HasControl(out.view()));
    ASSERT_EQ(out.view(), Safe(text));
  }
}

TEST(SafeTextTest, SafeJsonKeepsTheValueAndContainsNoControlCharacter) {
  EXPECT_EQ(SafeJson("{\"a\":\"x\\u001b\"}").view(), "{\"a\":\"x\\u001b\"}");
  EXPECT_EQ(SafeJson("\"\x7F\xC2\x9B\"").view(), "\"\\u007f\\u009b\"");
  EXPECT_EQ(SafeJson("\"" + Utf8(0x1F468) + Utf8(0x200D) + "\"").view(), "\"" + Utf8(0x1F468) + "\\u200d\"");
  EXPECT_EQ(SafeJson("\"\xE2\x80\xAE\"").view(), "\"\\u202e\"");
  EXPECT_EQ(SafeJson("\"\xF3\xA0\x81\x81\"").view(), "\"\\udb40\\udc41\"");
  EXPECT_EQ(SafeJson("\"\xC3\xA9\xF0\x9F\x98\x80\"").view(), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
}

}  // namespace
}  // namespace vllm::app
