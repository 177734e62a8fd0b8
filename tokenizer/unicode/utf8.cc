#include "tokenizer/unicode/utf8.h"

#include <cstdint>
#include <cstring>

namespace vllm::tokenizer {
namespace {

// Returns the end of the run of ASCII bytes that starts at `position`.
size_t AsciiRunEnd(std::string_view bytes, size_t position) {
  while (position + 8 <= bytes.size()) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + position, 8);
    if (word & 0x8080808080808080ULL) break;
    position += 8;
  }
  while (position < bytes.size() && static_cast<unsigned char>(bytes[position]) < 0x80) ++position;
  return position;
}

}  // namespace

Utf8Step DecodeUtf8(std::string_view bytes, size_t position) {
  using Kind = Utf8Step::Kind;
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(bytes[position + i]); };
  const size_t remaining = bytes.size() - position;
  const unsigned char lead = byte_at(0);
  if (lead < 0x80) return {Kind::kValid, lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Kind::kInvalid, 0, 1};
  const size_t length = Utf8SequenceLength(bytes[position]);
  // Table 3-7 of the Unicode Standard: some lead bytes restrict the range of the second byte, but of no other byte.
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (lead == 0xE0) low = 0xA0;
  if (lead == 0xED) high = 0x9F;
  if (lead == 0xF0) low = 0x90;
  if (lead == 0xF4) high = 0x8F;
  char32_t code_point = lead & (0xFF >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i == remaining) return {Kind::kIncomplete, 0, i};
    if (byte_at(i) < low || byte_at(i) > high) return {Kind::kInvalid, 0, i};
    code_point = code_point << 6 | (byte_at(i) & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {Kind::kValid, code_point, length};
}

bool IsAscii(std::string_view bytes) { return AsciiRunEnd(bytes, 0) == bytes.size(); }

bool IsValidUtf8(std::string_view bytes) {
  for (size_t position = 0;;) {
    position = AsciiRunEnd(bytes, position);
    if (position == bytes.size()) return true;
    const Utf8Step step = DecodeUtf8(bytes, position);
    if (step.kind != Utf8Step::Kind::kValid) return false;
    position += step.length;
  }
}

void AppendValidUtf8(std::string_view bytes, std::string& out) {
  size_t done = 0;
  size_t position = 0;
  while (true) {
    position = AsciiRunEnd(bytes, position);
    if (position == bytes.size()) break;
    const Utf8Step step = DecodeUtf8(bytes, position);
    if (step.kind != Utf8Step::Kind::kValid) {
      out.append(bytes.substr(done, position - done));
      out.append(kReplacementCharacter);
      done = position + step.length;
    }
    position += step.length;
  }
  out.append(bytes.substr(done));
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  AppendValidUtf8(bytes, out);
  return out;
}

void AppendCodePoint(char32_t code_point, std::string& out) {
  char bytes[4];
  out.append(bytes, EncodeCodePoint(code_point, bytes));
}

size_t CountCodePoints(std::string_view text) {
  size_t count = 0;
  for (const char c : text) count += !IsUtf8Continuation(c);
  return count;
}

size_t IncompleteUtf8Tail(std::string_view bytes) {
  // A sequence is at most 4 bytes, so an incomplete one starts in the last 3.
  for (size_t length = 1; length <= 3 && length <= bytes.size(); ++length) {
    const size_t start = bytes.size() - length;
    if (IsUtf8Continuation(bytes[start])) continue;
    const Utf8Step step = DecodeUtf8(bytes, start);
    return step.kind == Utf8Step::Kind::kIncomplete ? length : 0;
  }
  return 0;
}

}  // namespace vllm::tokenizer
