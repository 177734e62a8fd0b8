// UTF-8: decoding, encoding, validation and repair. Pure functions, any thread.
// Ill-formed input is replaced as the Unicode Standard recommends (chapter 3, U+FFFD Substitution of Maximal Subparts).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vllm::tokenizer {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// Returns true for the second and later bytes of a sequence.
inline bool IsUtf8Continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Returns the length of the sequence that starts with `lead`, 1 to 4. The result has no meaning if no valid sequence
// starts with `lead`.
inline size_t Utf8SequenceLength(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

struct Utf8Step {
  enum class Kind {
    kValid,       // `code_point` is decoded from `length` bytes
    kInvalid,     // `length` bytes form a maximal subpart; replace them with one U+FFFD
    kIncomplete,  // the text ends inside a sequence whose first `length` bytes are well formed
  };
  Kind kind;
  char32_t code_point;
  size_t length;
};

// Decodes the sequence at `position`. REQUIRES: position < bytes.size().
Utf8Step DecodeUtf8(std::string_view bytes, size_t position);

struct CodePoint {
  char32_t value;
  size_t length;
};

// Decodes one code point of valid text. REQUIRES: position < text.size(), text is valid UTF-8.
inline CodePoint CodePointAt(std::string_view text, size_t position) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data()) + position;
  if (p[0] < 0x80) return {p[0], 1};
  if (p[0] < 0xE0) return {static_cast<char32_t>((p[0] & 0x1F) << 6 | (p[1] & 0x3F)), 2};
  if (p[0] < 0xF0) return {static_cast<char32_t>((p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F)), 3};
  return {static_cast<char32_t>((p[0] & 0x07) << 18 | (p[1] & 0x3F) << 12 | (p[2] & 0x3F) << 6 | (p[3] & 0x3F)), 4};
}

// Returns the start of the code point that ends before `position`. REQUIRES: 0 < position <= text.size(), text is valid
// UTF-8.
inline size_t PreviousCodePoint(std::string_view text, size_t position) {
  do {
    --position;
  } while (position > 0 && IsUtf8Continuation(text[position]));
  return position;
}

bool IsValidUtf8(std::string_view bytes);
bool IsAscii(std::string_view bytes);

// Appends `bytes` to `out`. Replaces each maximal subpart of an ill-formed sequence with one U+FFFD.
void AppendValidUtf8(std::string_view bytes, std::string& out);
std::string ReplaceInvalidUtf8(std::string_view bytes);

// Writes the 1 to 4 bytes of `code_point` to `out` and returns their end. REQUIRES: code_point is a Unicode scalar
// value.
inline char* EncodeCodePoint(char32_t code_point, char* out) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (code_point < 0x80) {
    *out++ = byte(code_point);
    return out;
  }
  if (code_point < 0x800) {
    *out++ = byte(0xC0 | code_point >> 6);
  } else {
    if (code_point < 0x10000) {
      *out++ = byte(0xE0 | code_point >> 12);
    } else {
      *out++ = byte(0xF0 | code_point >> 18);
      *out++ = byte(0x80 | (code_point >> 12 & 0x3F));
    }
    *out++ = byte(0x80 | (code_point >> 6 & 0x3F));
  }
  *out++ = byte(0x80 | (code_point & 0x3F));
  return out;
}

// REQUIRES: code_point is a Unicode scalar value.
void AppendCodePoint(char32_t code_point, std::string& out);

// Returns the number of bytes that are not continuation bytes. For valid text this is the number of code points.
size_t CountCodePoints(std::string_view text);

// Returns the length of the incomplete sequence at the end of `bytes` that more bytes could complete, or 0.
size_t IncompleteUtf8Tail(std::string_view bytes);

}  // namespace vllm::tokenizer
