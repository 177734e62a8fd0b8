#include "tokenizer/jinja/values/letter_case.h"

#include <cstdint>
#include <string>

#include "tokenizer/jinja/values/text.h"

namespace vllm::jinja {
namespace {

// Lower-case letters first..last in steps of `step`; the upper-case letter is `delta` away.
struct CaseRange {
  char32_t first, last;
  int32_t delta;
  uint32_t step;
};

constexpr CaseRange kRanges[] = {
    {'a', 'z', -32, 1},        {0xe0, 0xf6, -32, 1},     {0xf8, 0xfe, -32, 1},     {0xff, 0xff, 121, 1},
    {0x101, 0x12f, -1, 2},     {0x133, 0x137, -1, 2},    {0x13a, 0x148, -1, 2},    {0x14b, 0x177, -1, 2},
    {0x17a, 0x17e, -1, 2},     {0x1ce, 0x1dc, -1, 2},    {0x1df, 0x1ef, -1, 2},    {0x1f9, 0x21f, -1, 2},
    {0x223, 0x233, -1, 2},     {0x3ac, 0x3ac, -38, 1},   {0x3ad, 0x3af, -37, 1},   {0x3b1, 0x3c1, -32, 1},
    {0x3c3, 0x3cb, -32, 1},    {0x3cc, 0x3cc, -64, 1},   {0x3cd, 0x3ce, -63, 1},   {0x3d9, 0x3ef, -1, 2},
    {0x430, 0x44f, -32, 1},    {0x450, 0x45f, -80, 1},   {0x461, 0x481, -1, 2},    {0x48b, 0x4bf, -1, 2},
    {0x4c2, 0x4ce, -1, 2},     {0x4cf, 0x4cf, -15, 1},   {0x4d1, 0x52f, -1, 2},    {0x561, 0x586, -48, 1},
    {0x10d0, 0x10fa, 3008, 1}, {0x1e01, 0x1e95, -1, 2},  {0x1ea1, 0x1eff, -1, 2},  {0x2170, 0x217f, -16, 1},
    {0x24d0, 0x24e9, -26, 1},  {0x2c30, 0x2c5f, -48, 1}, {0xff41, 0xff5a, -32, 1}, {0x10428, 0x1044f, -40, 1},
};

constexpr char32_t kSharpS = 0xdf, kDotlessI = 0x131, kDottedI = 0x130, kFinalSigma = 0x3c2, kSigma = 0x3a3;

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c); }

void AppendUpper(std::string& out, char32_t c) {
  if (c == kSharpS) {
    out += "SS";
  } else {
    AppendCodePoint(out, UpperOf(c));
  }
}

void AppendTitle(std::string& out, char32_t c) {
  if (c == kSharpS) {
    out += "Ss";
  } else if (c >= 0x10d0 && c <= 0x10fa) {  // Georgian has capitals but no title case
    AppendCodePoint(out, c);
  } else {
    AppendCodePoint(out, UpperOf(c));
  }
}

void AppendLower(std::string& out, std::string_view text, size_t next, char32_t c, char32_t previous) {
  if (c == kDottedI) {
    out += "i\xcc\x87";
    return;
  }
  if (c == kSigma && IsCased(previous)) {
    // The last letter of a word has its own form.
    if (next >= text.size() || !IsCased(NextCodePoint(text, next))) {
      AppendCodePoint(out, kFinalSigma);
      return;
    }
  }
  AppendCodePoint(out, LowerOf(c));
}

}  // namespace

char32_t UpperOf(char32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  if (c == 0xb5) return 0x39c;
  if (c == kDotlessI) return 'I';
  if (c == 0x17f) return 'S';
  if (c == kFinalSigma) return kSigma;
  for (const CaseRange& range : kRanges) {
    if (c >= range.first && c <= range.last && (c - range.first) % range.step == 0) {
      return static_cast<char32_t>(static_cast<int32_t>(c) + range.delta);
    }
  }
  return c;
}

char32_t LowerOf(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c == kDottedI) return 'i';
  if (c == 0x1e9e) return kSharpS;
  for (const CaseRange& range : kRanges) {
    const char32_t lower = static_cast<char32_t>(static_cast<int32_t>(c) - range.delta);
    if (lower >= range.first && lower <= range.last && (lower - range.first) % range.step == 0) return lower;
  }
  return c;
}

bool IsAlpha(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  struct Range {
    char32_t first, last;
  };
  static constexpr Range kLetters[] = {
      {0xaa, 0xaa},       {0xb5, 0xb5},       {0xba, 0xba},     {0xc0, 0xd6},     {0xd8, 0xf6},     {0xf8, 0x2c1},
      {0x370, 0x374},     {0x376, 0x377},     {0x37a, 0x37d},   {0x37f, 0x37f},   {0x386, 0x386},   {0x388, 0x3f5},
      {0x3f7, 0x481},     {0x48a, 0x52f},     {0x531, 0x556},   {0x560, 0x588},   {0x5d0, 0x5ea},   {0x620, 0x64a},
      {0x671, 0x6d3},     {0x904, 0x939},     {0xe01, 0xe30},   {0x10a0, 0x10c5}, {0x10d0, 0x10fa}, {0x1100, 0x1248},
      {0x1e00, 0x1fbc},   {0x2c00, 0x2ce4},   {0x3005, 0x3006}, {0x3041, 0x3096}, {0x309d, 0x309f}, {0x30a1, 0x30fa},
      {0x30fc, 0x30ff},   {0x3105, 0x312f},   {0x3131, 0x318e}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa48c},
      {0xac00, 0xd7a3},   {0xf900, 0xfad9},   {0xff21, 0xff3a}, {0xff41, 0xff5a}, {0xff66, 0xffbe}, {0x10400, 0x1049d},
      {0x1d400, 0x1d7cb}, {0x20000, 0x323af},
  };
  for (const Range& range : kLetters) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

std::string ToUpper(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (size_t i = 0; i < text.size();) AppendUpper(result, NextCodePoint(text, i));
  return result;
}

std::string ToLower(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  char32_t previous = 0;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    AppendLower(result, text, i, c, previous);
    previous = c;
  }
  return result;
}

std::string Capitalize(std::string_view text) {
  if (text.empty()) return {};
  std::string result;
  size_t first = 0;
  AppendTitle(result, NextCodePoint(text, first));
  return result + ToLower(text.substr(first));
}

std::string TitleCase(std::string_view text) {
  std::string result;
  char32_t previous = 0;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    if (IsCased(previous)) {
      AppendLower(result, text, i, c, previous);
    } else {
      AppendTitle(result, c);
    }
    previous = c;
  }
  return result;
}

std::string SwapCase(std::string_view text) {
  std::string result;
  char32_t previous = 0;
  for (size_t i = 0; i < text.size();) {
    const char32_t c = NextCodePoint(text, i);
    if (IsUpper(c)) {
      AppendLower(result, text, i, c, previous);
    } else {
      AppendUpper(result, c);
    }
    previous = c;
  }
  return result;
}

}  // namespace vllm::jinja
