#include "tokenizer/models/token_borders.h"

#include <string>

#include "tokenizer/unicode/byte_level.h"

namespace vllm {
namespace {

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Between two characters outside ASCII. REQUIRES: 0 < at < bytes.size().
bool IsBorder(std::string_view bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]) >= 0xC0 && static_cast<unsigned char>(bytes[at - 1]) >= 0x80;
}

size_t LengthByLead(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
}

// The character on a side of a border, or what there is of it; at most four bytes.
std::string_view Before(std::string_view bytes, size_t border) {
  size_t begin = border - 1;
  while (begin > 0 && border - begin < 4 && IsContinuation(bytes[begin])) --begin;
  return bytes.substr(begin, border - begin);
}
std::string_view After(std::string_view bytes, size_t border) {
  return bytes.substr(border, LengthByLead(bytes[border]));
}

uint64_t Pair(std::string_view before, std::string_view after) {
  uint64_t pair = 0;
  for (const std::string_view side : {before, after}) {
    uint32_t packed = 0;
    for (const char c : side) packed = packed << 8 | static_cast<unsigned char>(c);
    pair = pair << 32 | packed;
  }
  return pair;
}

}  // namespace

TokenBorders::TokenBorders(const Vocabulary& vocabulary) : pairs_((size_t{1} << kFilterBits) / 64), partial_{} {
  std::string bytes;
  for (int32_t id = 0; id < vocabulary.IdLimit(); ++id) {
    bytes.clear();
    AppendFromByteLevel(vocabulary.TokenOf(id).value_or(""), bytes);
    AddToken(bytes);
  }
}

void TokenBorders::AddToken(std::string_view bytes) {
  for (size_t at = 1; at < bytes.size(); ++at) {
    if (!IsBorder(bytes, at)) continue;
    const std::string_view before = Before(bytes, at);
    const std::string_view after = After(bytes, at);
    const bool is_whole = !IsContinuation(before[0]) && before.size() == LengthByLead(before[0]) &&
                          after.size() == LengthByLead(after[0]);
    const size_t bit = is_whole ? Bit(Pair(before, after)) : Row(bytes[at - 1], bytes[at]);
    (is_whole ? pairs_[bit / 64] : partial_[bit / 64]) |= uint64_t{1} << bit % 64;
  }
}

size_t TokenBorders::PartEnd(std::string_view word, size_t start) const {
  for (size_t at = start + 1; at < word.size(); ++at) {
    if (!IsBorder(word, at)) continue;
    const size_t row = Row(word[at - 1], word[at]);
    if ((partial_[row / 64] >> row % 64 & 1) != 0) continue;
    const size_t bit = Bit(Pair(Before(word, at), After(word, at)));
    if ((pairs_[bit / 64] >> bit % 64 & 1) == 0) return at;
  }
  return word.size();
}

}  // namespace vllm
