#include "engine/structured_output/regex/code_point_set.h"

#include <algorithm>

namespace vllm {
namespace {

constexpr char32_t kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

// One digit of a number in which each digit is written by its own expression: `write(first, last, position)` for the
// digits first..last at `position`. Adds to `out` the expressions of all numbers low..high with `num_digits` digits of
// `bits` bits each.
template <typename Write>
RegexId Numbers(RegexStore& store, uint32_t low, uint32_t high, int num_digits, int bits, const Write& write) {
  if (num_digits == 0) return RegexStore::kEmpty;
  const int shift = bits * (num_digits - 1);
  const uint32_t rest = (uint32_t{1} << shift) - 1;
  const uint32_t first = low >> shift, last = high >> shift;
  const auto pair = [&](uint32_t from, uint32_t to, uint32_t rest_low, uint32_t rest_high) {
    return store.Concat(write(from, to, num_digits - 1),
                        Numbers(store, rest_low, rest_high, num_digits - 1, bits, write));
  };
  if (first == last) return pair(first, last, low & rest, high & rest);
  std::vector<RegexId> parts;
  uint32_t full_first = first, full_last = last;
  if ((low & rest) != 0) parts.push_back(pair(full_first++, first, low & rest, rest));
  if ((high & rest) != rest) parts.push_back(pair(last, full_last--, 0, high & rest));
  if (full_first <= full_last) parts.push_back(pair(full_first, full_last, 0, rest));
  return store.Or(std::move(parts));
}

RegexId Utf8(RegexStore& store, const CodePointSet& set) {
  static constexpr struct {
    char32_t first, last;
    uint8_t lead;
    int num_continuations;
  } kLengths[] = {{0, 0x7F, 0, 0}, {0x80, 0x7FF, 0xC0, 1}, {0x800, 0xFFFF, 0xE0, 2}, {0x10000, 0x10FFFF, 0xF0, 3}};
  std::vector<RegexId> parts;
  ByteSet ascii;
  for (const CodePointRange range : set.ranges()) {
    for (const auto& length : kLengths) {
      const char32_t first = std::max(range.first, length.first), last = std::min(range.last, length.last);
      if (first > last) continue;
      if (length.num_continuations == 0) {
        ascii.AddRange(static_cast<uint8_t>(first), static_cast<uint8_t>(last));
        continue;
      }
      const auto write = [&](uint32_t from, uint32_t to, int position) {
        const uint32_t lead = position == length.num_continuations ? length.lead : 0x80;
        return store.Bytes(ByteSet::Range(static_cast<uint8_t>(lead + from), static_cast<uint8_t>(lead + to)));
      };
      parts.push_back(Numbers(store, first, last, length.num_continuations + 1, 6, write));
    }
  }
  parts.push_back(store.Bytes(ascii));
  return store.Or(std::move(parts));
}

RegexId HexDigits(RegexStore& store, uint32_t low, uint32_t high) {
  return Numbers(store, low, high, 4, 4, [&](uint32_t from, uint32_t to, int) {
    ByteSet set;
    for (uint32_t digit = from; digit <= to; ++digit) {
      set.Add(static_cast<uint8_t>("0123456789abcdef"[digit]));
      set.Add(static_cast<uint8_t>("0123456789ABCDEF"[digit]));
    }
    return store.Bytes(set);
  });
}

RegexId JsonString(RegexStore& store, const CodePointSet& set) {
  static constexpr struct {
    char32_t code_point;
    char letter;
  } kEscapes[] = {{'"', '"'},  {'\\', '\\'}, {'/', '/'},  {'\b', 'b'},
                  {'\f', 'f'}, {'\n', 'n'},  {'\r', 'r'}, {'\t', 't'}};
  const CodePointSet plain{{0x20, 0x21}, {0x23, 0x5B}, {0x5D, CodePointSet::kMax}};
  ByteSet letters;
  for (const auto& escape : kEscapes) {
    if (set.Contains(escape.code_point)) letters.Add(static_cast<uint8_t>(escape.letter));
  }
  const RegexId unicode = store.Literal("u");
  std::vector<RegexId> escapes = {store.Bytes(letters)};
  const CodePointSet never_escaped{{' ', ' '}, {'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
  const CodePointSet escaped = set.Intersection(never_escaped.Complement());
  for (const CodePointRange range : escaped.ranges()) {
    if (range.first <= 0xFFFF) {
      const char32_t last = std::min<char32_t>(range.last, 0xFFFF);
      escapes.push_back(store.Concat(unicode, HexDigits(store, range.first, last)));
    }
    if (range.last > 0xFFFF) {
      const uint32_t first = std::max<char32_t>(range.first, 0x10000) - 0x10000;
      const RegexId pair =
          Numbers(store, first, range.last - 0x10000, 2, 10, [&](uint32_t from, uint32_t to, int position) {
            const uint32_t base = position == 1 ? 0xD800 : 0xDC00;
            const RegexId digits = HexDigits(store, base + from, base + to);
            return position == 1 ? digits : store.Concat(store.Literal("\\u"), digits);
          });
      escapes.push_back(store.Concat(unicode, pair));
    }
  }
  return store.Or(
      {Utf8(store, set.Intersection(plain)), store.Concat(store.Literal("\\"), store.Or(std::move(escapes)))});
}

}  // namespace

CodePointSet::CodePointSet(std::vector<CodePointRange> ranges) {
  std::ranges::sort(ranges, {}, &CodePointRange::first);
  const auto add = [&](char32_t first, char32_t last) {
    if (first > last) return;
    if (!ranges_.empty() && first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, last);
    } else {
      ranges_.push_back({first, last});
    }
  };
  for (const CodePointRange range : ranges) {
    add(range.first, std::min<char32_t>(range.last, kFirstSurrogate - 1));
    add(std::max<char32_t>(range.first, kLastSurrogate + 1), range.last);
  }
}

bool CodePointSet::Contains(char32_t code_point) const {
  const auto it = std::ranges::lower_bound(ranges_, code_point, {}, &CodePointRange::last);
  return it != ranges_.end() && it->first <= code_point;
}

CodePointSet CodePointSet::Union(const CodePointSet& other) const {
  std::vector<CodePointRange> ranges = ranges_;
  ranges.insert(ranges.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePointSet(std::move(ranges));
}

CodePointSet CodePointSet::Intersection(const CodePointSet& other) const {
  return Complement().Union(other.Complement()).Complement();
}

CodePointSet CodePointSet::Complement() const {
  std::vector<CodePointRange> gaps;
  char32_t next = 0;
  for (const CodePointRange range : ranges_) {
    if (range.first > next) gaps.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kMax) gaps.push_back({next, kMax});
  return CodePointSet(std::move(gaps));
}

RegexId CodePointsAsRegex(RegexStore& store, const CodePointSet& set, TextSpelling spelling) {
  return spelling == TextSpelling::kUtf8 ? Utf8(store, set) : JsonString(store, set);
}

RegexId ComplementOfText(RegexStore& store, RegexId operand, TextSpelling spelling) {
  return store.And({store.Not(operand), AnyText(store, spelling)});
}

RegexId AnyText(RegexStore& store, TextSpelling spelling) {
  return store.Star(CodePointsAsRegex(store, CodePointSet::All(), spelling));
}

}  // namespace vllm
