#include "tokenizer/normalizers/charsmap.h"

#include <algorithm>

#include "tokenizer/formats/tokenizer_error.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::tokenizer {
namespace {

uint32_t ReadU32(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

constexpr uint32_t LabelOf(uint32_t unit) { return unit & (uint32_t{1} << 31 | 0xFF); }
constexpr uint32_t OffsetOf(uint32_t unit) { return (unit >> 10) << ((unit & (1 << 9)) >> 6); }
constexpr bool HasRule(uint32_t unit) { return (unit & (1 << 8)) != 0; }

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const std::string& where) {
  if (bytes.empty()) return;
  const auto fail = [&where](const std::string& why) {
    throw TokenizerError("reading the precompiled_charsmap of " + where + ": " + why);
  };
  if (bytes.size() < 4) fail("too short");
  const size_t trie_bytes = ReadU32(bytes);
  bytes.remove_prefix(4);
  if (trie_bytes > bytes.size() || trie_bytes % 4 != 0) {
    fail("invalid trie size (" + std::to_string(trie_bytes) + " bytes, limit " + std::to_string(bytes.size()) +
         ", must be a multiple of 4)");
  }
  if (!IsValidUtf8(bytes.substr(trie_bytes))) fail("replacements are not valid UTF-8");
  units_.reserve(trie_bytes / 4);
  for (size_t i = 0; i < trie_bytes; i += 4) units_.push_back(ReadU32(bytes.substr(i)));
  replacements_ = bytes.substr(trie_bytes);
  // Replacements end with a zero byte, which the last one may lack.
  for (size_t begin = 0; begin < replacements_.size();) {
    const size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    longest_replacement_ = std::max(longest_replacement_, end - begin);
    begin = end + 1;
  }
}

Charsmap::Rule Charsmap::Search(std::string_view text, bool longest) const {
  Rule rule;
  if (units_.empty()) return rule;
  size_t node = OffsetOf(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || LabelOf(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= OffsetOf(unit);
    if (!HasRule(unit) || node >= units_.size()) continue;
    const size_t begin = units_[node] & 0x7FFFFFFF;
    const bool splits_character = i + 1 < text.size() && IsUtf8Continuation(text[i + 1]);
    if (splits_character || begin > replacements_.size()) continue;
    if (begin < replacements_.size() && IsUtf8Continuation(replacements_[begin])) continue;
    const size_t end = std::min(replacements_.find('\0', begin), replacements_.size());
    rule = {i + 1, std::string_view(replacements_).substr(begin, end - begin)};
    if (!longest) break;
  }
  return rule;
}

}  // namespace vllm::tokenizer
