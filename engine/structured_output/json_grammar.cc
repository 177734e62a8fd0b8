#include "engine/structured_output/json_grammar.h"

#include <algorithm>
#include <map>
#include <vector>

#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

constexpr std::string_view kSimpleEscapes = "\"\\bfnrt";  // and \/, which is left out where a key has one spelling
constexpr char32_t kMaxCodePoint = 0x10FFFF;

// The keys that a member must not have, as a trie. A node has a child for each next character, by its spelling: "a",
// "\\n", "\\u0001".
struct KeyNode {
  std::map<std::string, size_t> children;
  bool is_key = false;
};

size_t SpellingLength(std::string_view text, size_t at) {
  if (text[at] != '\\') return tokenizer::CodePointAt(text, at).length;
  return text[at + 1] == 'u' ? 6 : 2;
}

std::vector<KeyNode> MakeKeyTrie(std::span<const std::string> keys) {
  std::vector<KeyNode> trie(1);
  for (const std::string& key : keys) {
    const std::string quoted = QuoteJson(key);
    const std::string_view text = std::string_view(quoted).substr(1, quoted.size() - 2);
    size_t node = 0;
    for (size_t i = 0; i < text.size();) {
      const size_t length = SpellingLength(text, i);
      const auto [it, inserted] = trie[node].children.try_emplace(std::string(text.substr(i, length)), trie.size());
      i += length;
      node = it->second;
      if (inserted) trie.emplace_back();
    }
    trie[node].is_key = true;
  }
  return trie;
}

}  // namespace

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

void JsonGrammar::AddPlainCharacters(ByteGrammarState from, std::u32string_view except, ByteGrammarState to) {
  std::u32string excluded(except);
  excluded += U"\"\\";
  std::sort(excluded.begin(), excluded.end());
  char32_t low = 0x20;
  for (const char32_t point : excluded) {
    if (point > low) builder_.AddCodePoints(from, low, point - 1, to);
    low = std::max<char32_t>(low, point + 1);
  }
  if (low <= kMaxCodePoint) builder_.AddCodePoints(from, low, kMaxCodePoint, to);
}

void JsonGrammar::AddEscape(ByteGrammarState from, ByteGrammarState to) {
  const auto add_hex = [this](ByteGrammarState at, std::string_view ranges, ByteGrammarState next) {
    for (size_t i = 0; i + 1 < ranges.size(); i += 2) {
      builder_.AddBytes(at, static_cast<uint8_t>(ranges[i]), static_cast<uint8_t>(ranges[i + 1]), next);
    }
  };
  constexpr std::string_view kAnyHex = "09afAF";
  for (const char c : kSimpleEscapes) builder_.AddBytes(from, static_cast<uint8_t>(c), static_cast<uint8_t>(c), to);
  builder_.AddBytes(from, '/', '/', to);
  const ByteGrammarState first = builder_.AddLiteral(from, "u");
  // The last three digits after a first one that is not D, and the last two after D and a digit below 8.
  const ByteGrammarState three = builder_.AddState();
  const ByteGrammarState two = builder_.AddState();
  const ByteGrammarState one = builder_.AddState();
  add_hex(first, "09acAC", three);
  add_hex(first, "efEF", three);
  add_hex(three, kAnyHex, two);
  add_hex(two, kAnyHex, one);
  add_hex(one, kAnyHex, to);
  const ByteGrammarState after_d = builder_.AddState();
  add_hex(first, "ddDD", after_d);
  add_hex(after_d, "07", two);
  // A high surrogate, D800..DBFF, and the low one, DC00..DFFF.
  const ByteGrammarState high_two = builder_.AddState();
  const ByteGrammarState high_one = builder_.AddState();
  const ByteGrammarState high_end = builder_.AddState();
  add_hex(after_d, "89abAB", high_two);
  add_hex(high_two, kAnyHex, high_one);
  add_hex(high_one, kAnyHex, high_end);
  const ByteGrammarState low_first = builder_.AddLiteral(high_end, "\\u");
  const ByteGrammarState low_second = builder_.AddState();
  add_hex(low_first, "ddDD", low_second);
  add_hex(low_second, "cfCF", two);
}

ByteGrammarRule JsonGrammar::Character() {
  if (!character_) {
    character_ = builder_.AddRule();
    const ByteGrammarState start = builder_.StartOf(*character_);
    const ByteGrammarState end = builder_.EndOf(*character_);
    AddPlainCharacters(start, U"", end);
    AddEscape(builder_.AddLiteral(start, "\\"), end);
  }
  return *character_;
}

void JsonGrammar::AddStringRest(ByteGrammarState from, ByteGrammarState to) {
  AddPlainCharacters(from, U"", from);
  AddEscape(builder_.AddLiteral(from, "\\"), from);
  builder_.AddBytes(from, '"', '"', to);
}

ByteGrammarRule JsonGrammar::String() {
  if (!string_) {
    string_ = builder_.AddRule();
    AddStringRest(builder_.AddLiteral(builder_.StartOf(*string_), "\""), builder_.EndOf(*string_));
  }
  return *string_;
}

void JsonGrammar::AddString(ByteGrammarState from, int64_t min_length, std::optional<int64_t> max_length,
                            ByteGrammarState to) {
  ByteGrammarState at = builder_.AddLiteral(from, "\"");
  if (!max_length && min_length == 0) return AddStringRest(at, to);
  const int64_t chain = max_length.value_or(min_length);
  for (int64_t length = 0; length <= chain; ++length) {
    if (max_length && length >= min_length) builder_.AddBytes(at, '"', '"', to);
    if (length == chain) break;
    const ByteGrammarState next = builder_.AddState();
    builder_.AddCall(at, Character(), next);
    at = next;
  }
  if (!max_length) AddStringRest(at, to);
}

ByteGrammarRule JsonGrammar::Integer() {
  if (!integer_) {
    integer_ = builder_.AddRule();
    const ByteGrammarState start = builder_.StartOf(*integer_);
    const ByteGrammarState end = builder_.EndOf(*integer_);
    const ByteGrammarState digits = builder_.AddState();
    const ByteGrammarState sign = builder_.AddLiteral(start, "-");
    for (const ByteGrammarState from : {start, sign}) {
      builder_.AddBytes(from, '0', '0', end);
      builder_.AddBytes(from, '1', '9', digits);
    }
    builder_.AddBytes(digits, '0', '9', digits);
    builder_.AddEmpty(digits, end);
  }
  return *integer_;
}

ByteGrammarRule JsonGrammar::Number() {
  if (!number_) {
    number_ = builder_.AddRule();
    const ByteGrammarState end = builder_.EndOf(*number_);
    const ByteGrammarState whole = builder_.AddState();
    builder_.AddCall(builder_.StartOf(*number_), Integer(), whole);
    builder_.AddEmpty(whole, end);
    const ByteGrammarState fraction = builder_.AddState();
    builder_.AddBytes(builder_.AddLiteral(whole, "."), '0', '9', fraction);
    builder_.AddBytes(fraction, '0', '9', fraction);
    builder_.AddEmpty(fraction, end);
    const ByteGrammarState sign = builder_.AddState();
    const ByteGrammarState digits = builder_.AddState();
    const ByteGrammarState exponent = builder_.AddState();
    for (const ByteGrammarState from : {whole, fraction}) {
      for (const char e : {'e', 'E'}) builder_.AddBytes(from, static_cast<uint8_t>(e), static_cast<uint8_t>(e), sign);
    }
    builder_.AddBytes(sign, '+', '+', digits);
    builder_.AddBytes(sign, '-', '-', digits);
    builder_.AddEmpty(sign, digits);
    builder_.AddBytes(digits, '0', '9', exponent);
    builder_.AddBytes(exponent, '0', '9', exponent);
    builder_.AddEmpty(exponent, end);
  }
  return *number_;
}

ByteGrammarRule JsonGrammar::Value() {
  if (!value_) {
    value_ = builder_.AddRule();
    const ByteGrammarState start = builder_.StartOf(*value_);
    const ByteGrammarState end = builder_.EndOf(*value_);
    for (const std::string_view word : {"null", "true", "false"}) {
      builder_.AddEmpty(builder_.AddLiteral(start, word), end);
    }
    builder_.AddCall(start, Number(), end);
    builder_.AddCall(start, String(), end);
    const ByteGrammarState array = builder_.AddLiteral(start, "[");
    const ByteGrammarState after_element = builder_.AddState();
    builder_.AddCall(array, *value_, after_element);
    builder_.AddCall(builder_.AddLiteral(after_element, ","), *value_, after_element);
    for (const ByteGrammarState from : {array, after_element}) builder_.AddBytes(from, ']', ']', end);
    const ByteGrammarState object = builder_.AddLiteral(start, "{");
    const ByteGrammarState after_member = builder_.AddState();
    AddMember(object, {}, *value_, after_member);
    AddMember(builder_.AddLiteral(after_member, ","), {}, *value_, after_member);
    for (const ByteGrammarState from : {object, after_member}) builder_.AddBytes(from, '}', '}', end);
  }
  return *value_;
}

void JsonGrammar::AddMember(ByteGrammarState from, std::span<const std::string> other_than, ByteGrammarRule rule,
                            ByteGrammarState to) {
  const ByteGrammarState key_end = builder_.AddState();
  builder_.AddCall(builder_.AddLiteral(key_end, ":"), rule, to);
  if (other_than.empty()) {
    builder_.AddCall(from, String(), key_end);
    return;
  }
  const ByteGrammarState free = builder_.AddState();  // the key differs from all others
  AddStringRest(free, key_end);
  const std::vector<KeyNode> trie = MakeKeyTrie(other_than);
  std::vector<ByteGrammarState> states(trie.size());
  states[0] = builder_.AddLiteral(from, "\"");
  // A node comes after its parent.
  for (size_t i = 0; i < trie.size(); ++i) {
    const KeyNode& node = trie[i];
    const ByteGrammarState escape = builder_.AddLiteral(states[i], "\\");
    std::u32string plain;
    for (const auto& [spelling, child] : node.children) {
      if (spelling[0] == '\\') {
        states[child] = builder_.AddLiteral(escape, std::string_view(spelling).substr(1));
      } else {
        states[child] = builder_.AddLiteral(states[i], spelling);
        plain += tokenizer::CodePointAt(spelling, 0).value;
      }
    }
    AddPlainCharacters(states[i], plain, free);
    if (!node.is_key) builder_.AddBytes(states[i], '"', '"', key_end);
    if (node.children.empty()) {
      AddEscape(escape, free);
      continue;
    }
    for (const char c : kSimpleEscapes) {
      if (node.children.contains(std::string("\\") + c)) continue;
      builder_.AddBytes(escape, static_cast<uint8_t>(c), static_cast<uint8_t>(c), free);
    }
  }
}

}  // namespace vllm
