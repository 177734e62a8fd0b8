#include "engine/structured_output/json_schema/json_text.h"

#include <algorithm>
#include <map>

#include "engine/structured_output/regex/code_point_set.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {

std::string QuoteJson(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (byte < 0x20) {
          out += "\\u00";
          out += kHex[byte >> 4];
          out += kHex[byte & 15];
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

RegexId SpellingsOf(RegexStore& store, std::vector<std::string> strings) {
  std::sort(strings.begin(), strings.end());
  strings.erase(std::unique(strings.begin(), strings.end()), strings.end());
  std::map<char32_t, RegexId> spellings;
  const auto spelling = [&](char32_t c) {
    const auto [it, inserted] = spellings.try_emplace(c, 0);
    if (inserted) it->second = CodePointsAsRegex(store, {{c, c}}, TextSpelling::kJsonString);
    return it->second;
  };
  // A trie, from the last string to the first: open[d] has the alternatives after the first d code points of `path`.
  std::vector<std::vector<RegexId>> open(1);
  std::u32string path;
  const auto close = [&](size_t depth) {
    for (; open.size() > depth + 1; open.pop_back()) {
      const RegexId rest = store.Or(std::move(open.back()));
      open[open.size() - 2].push_back(store.Concat(spelling(path[open.size() - 2]), rest));
    }
  };
  for (const std::string& text : strings) {
    std::u32string code_points;
    for (size_t i = 0; i < text.size();) {
      const tokenizer::CodePoint c = tokenizer::CodePointAt(text, i);
      code_points.push_back(c.value);
      i += c.length;
    }
    const auto common = std::mismatch(code_points.begin(), code_points.end(), path.begin(), path.end()).first;
    close(static_cast<size_t>(common - code_points.begin()));
    path = std::move(code_points);
    open.resize(path.size() + 1);
    open.back().push_back(RegexStore::kEmpty);
  }
  close(0);
  return store.Or(std::move(open[0]));
}

RegexId CanonicalStrings(RegexStore& store) {
  const RegexId plain =
      CodePointsAsRegex(store, {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, CodePointSet::kMax}}, TextSpelling::kUtf8);
  std::vector<std::string> escapes;
  for (char c = 0; c < 0x20; ++c) {
    const std::string quoted = QuoteJson(std::string_view(&c, 1));
    escapes.push_back(quoted.substr(1, quoted.size() - 2));
  }
  escapes.insert(escapes.end(), {"\\\"", "\\\\"});
  return store.Star(store.Or({plain, store.Literals(std::move(escapes))}));
}

}  // namespace vllm
