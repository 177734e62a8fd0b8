#include "engine/structured_output/dialects/lark_document.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/structured_output/dialects/grammar_tree.h"
#include "engine/structured_output/dialects/lark_common.h"
#include "engine/structured_output/dialects/text_cursor.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

using Json = nlohmann::ordered_json;
using Kind = LarkDocument::Kind;
using NodeId = LarkDocument::NodeId;

constexpr int kMaxJsonDepth = 512;

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }

class LarkReader {
 public:
  explicit LarkReader(std::string_view text) : cursor_(text) {}

  LarkDocument Read() {
    for (SkipSpace(); !cursor_.AtEnd(); SkipSpace()) {
      if (cursor_.LooksAt("%")) {
        Directive();
      } else {
        Define();
      }
      SkipSpace();
      if (!cursor_.AtEnd() && !AtStatement()) cursor_.Fail("unexpected character");
    }
    return std::move(document_);
  }

 private:
  void SkipSpace() {
    while (true) {
      const char c = cursor_.Peek();
      if (c == '#' || cursor_.LooksAt("//")) {
        cursor_.SkipLine();
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        cursor_.Take(std::string_view(&c, 1));
      } else {
        return;
      }
    }
  }

  // Returns whether a directive or the head of a definition comes next.
  bool AtStatement() {
    if (cursor_.LooksAt("%")) return !cursor_.LooksAt("%json") && !cursor_.LooksAt("%regex");
    const size_t start = cursor_.at();
    if (!cursor_.Take("?")) cursor_.Take("!");
    bool is_head = !cursor_.TakeName().empty();
    if (cursor_.Take(".")) cursor_.TakeName();
    const char c = cursor_.Peek();
    if (is_head && (c == '[' || c == '{')) {
      // Options or the parameters of a template.
      bool is_quoted = false;
      for (; !cursor_.AtEnd() && !cursor_.LooksAt("\n"); cursor_.TakeCodePoint()) {
        if (cursor_.Take("\\") && cursor_.AtEnd()) break;
        if (cursor_.LooksAt("\"")) is_quoted = !is_quoted;
        if (!is_quoted && (cursor_.LooksAt("]") || cursor_.LooksAt("}"))) break;
      }
      is_head = cursor_.Take("]") || cursor_.Take("}");
    }
    while (cursor_.Take(" ") || cursor_.Take("\t")) {
    }
    is_head = is_head && cursor_.LooksAt(":");
    cursor_.MoveTo(start);
    return is_head;
  }

  void Directive() {
    const size_t start = cursor_.at();
    cursor_.Take("%");
    const std::string_view name = cursor_.TakeName();
    if (name == "ignore") {
      document_.ignored.push_back(Alternatives(0));
    } else if (name == "import") {
      Import();
    } else if (name == "llguidance") {
      SetOptions();
    } else {
      cursor_.FailAt(start, "%" + std::string(name) + " is not supported");
    }
  }

  void Import() {
    SkipBlanks();
    const size_t start = cursor_.at();
    if (cursor_.TakeName() != "common") cursor_.FailAt(start, "only common can be imported");
    SkipBlanks();
    if (cursor_.Take(".")) {
      const size_t at = cursor_.at();
      const std::string_view name = cursor_.TakeName();
      SkipBlanks();
      if (cursor_.Take("->")) {
        SkipBlanks();
        ImportTerminal(at, name, cursor_.TakeName());
      } else {
        ImportTerminal(at, name, name);
      }
      return;
    }
    cursor_.Expect("(");
    do {
      SkipSpace();
      const size_t at = cursor_.at();
      const std::string_view name = cursor_.TakeName();
      ImportTerminal(at, name, name);
      SkipSpace();
    } while (cursor_.Take(","));
    cursor_.Expect(")");
  }

  void ImportTerminal(size_t at, std::string_view name, std::string_view alias) {
    const std::optional<std::string_view> pattern = CommonTerminal(name);
    if (!pattern) cursor_.FailAt(at, "common has no terminal " + Escape(name));
    if (!IsLarkTerminal(alias)) cursor_.FailAt(at, "a terminal must have a name in upper case");
    const NodeId body = Add({.kind = Kind::kPattern, .at = at, .text = std::string(*pattern)});
    AddDefinition({.name = std::string(alias), .at = at, .body = body});
  }

  void SetOptions() {
    SkipSpace();
    const size_t start = cursor_.at();
    const Json options = ParseJson(TakeJson(), start);
    for (const auto& [key, value] : options.items()) {
      if (key == "skip_repetition" && (value == "once" || value == "any")) {
        document_.ignores_once = value == "once";
      } else if (key == "allow_initial_skip" && value.is_boolean()) {
        document_.ignores_first = value.get<bool>();
      } else if (key == "no_forcing" && value.is_boolean()) {
        // Only about speed.
      } else {
        cursor_.FailAt(start, "the option " + Escape(key) + " is not supported");
      }
    }
  }

  void SkipBlanks() {
    while (cursor_.Take(" ") || cursor_.Take("\t")) {
    }
  }

  void AddDefinition(LarkDocument::Definition definition) {
    if (document_.definitions.size() == LarkDocument::kMaxDefinitions) {
      cursor_.Fail("too many rules (limit " + std::to_string(LarkDocument::kMaxDefinitions) + ")");
    }
    const auto index = static_cast<uint32_t>(document_.definitions.size());
    if (!document_.by_name.emplace(definition.name, index).second) {
      cursor_.FailAt(definition.at, "the name " + definition.name + " is defined twice");
    }
    document_.definitions.push_back(std::move(definition));
  }

  void Define() {
    // These prefixes only change the trees that Lark makes of texts.
    if (!cursor_.Take("?")) cursor_.Take("!");
    LarkDocument::Definition definition;
    definition.at = cursor_.at();
    definition.name = cursor_.TakeName();
    if (definition.name.empty()) cursor_.Fail("missing the name of a rule");
    if (cursor_.LooksAt(".")) cursor_.Fail("priorities are not supported");
    if (cursor_.LooksAt("{")) cursor_.Fail("templates are not supported");
    if (cursor_.LooksAt("::")) cursor_.Fail("parameters of rules are not supported");
    if (cursor_.Take("[")) Options(definition);
    SkipBlanks();
    if (cursor_.LooksAt("::")) cursor_.Fail("parameters of rules are not supported");
    cursor_.Expect(":");
    definition.body = Alternatives(0);
    AddDefinition(std::move(definition));
  }

  void Options(LarkDocument::Definition& definition) {
    do {
      SkipSpace();
      const size_t at = cursor_.at();
      const std::string_view name = cursor_.TakeName();
      SkipSpace();
      std::optional<NodeId> value;
      if (cursor_.Take("=")) {
        SkipSpace();
        if (name == "max_tokens" || name == "temperature") cursor_.FailAt(at, Escape(name) + " is not supported");
        value = Atom(0);
      }
      if (name == "lazy" && !value) {
        definition.is_lazy = true;
      } else if (name == "suffix" && value) {
        definition.suffix = value;
      } else if (name == "stop" && value) {
        const LarkDocument::Node& node = document_.nodes[*value];
        if (node.kind == Kind::kString && node.text.empty()) {
          cursor_.FailAt(at, "stop=\"\" is not supported: the end of the output ends all rules");
        }
        definition.stop = value;
      } else if (name != "capture" && !(name == "stop_capture" && value)) {
        // Captures name parts of the text, and leave it unchanged.
        cursor_.FailAt(at, "the option " + Escape(name) + " is not supported");
      }
      SkipSpace();
    } while (cursor_.Take(","));
    cursor_.Expect("]");
    if (definition.suffix && definition.stop) cursor_.FailAt(definition.at, "suffix and stop exclude each other");
  }

  NodeId Add(LarkDocument::Node node) {
    if (document_.nodes.size() == LarkDocument::kMaxNodes) {
      cursor_.Fail("too many parts (limit " + std::to_string(LarkDocument::kMaxNodes) + ")");
    }
    document_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(document_.nodes.size() - 1);
  }
  NodeId AddList(Kind kind, size_t at, std::vector<NodeId> children) {
    if (children.size() == 1) return children[0];
    return Add({.kind = kind, .at = at, .children = std::move(children)});
  }

  NodeId Alternatives(int depth) {
    if (depth > GrammarTree::kMaxDepth) {
      cursor_.Fail("nested too deeply (limit " + std::to_string(GrammarTree::kMaxDepth) + ")");
    }
    const size_t at = cursor_.at();
    std::vector<NodeId> alternatives;
    do {
      std::vector<NodeId> operands;
      do {
        operands.push_back(Sequence(depth));
      } while (cursor_.Take("&"));
      alternatives.push_back(AddList(Kind::kAnd, at, std::move(operands)));
      if (cursor_.Take("->")) {  // the name of an alternative
        SkipSpace();
        cursor_.TakeName();
        SkipSpace();
      }
    } while (cursor_.Take("|"));
    return AddList(Kind::kAlternatives, at, std::move(alternatives));
  }

  NodeId Sequence(int depth) {
    const size_t at = cursor_.at();
    std::vector<NodeId> parts;
    while (true) {
      SkipSpace();
      static constexpr std::string_view kEnds = "|&)]";
      if (cursor_.AtEnd() || kEnds.find(cursor_.Peek()) != kEnds.npos || cursor_.LooksAt("->") || AtStatement()) break;
      parts.push_back(Quantified(depth));
    }
    return AddList(Kind::kSequence, at, std::move(parts));
  }

  NodeId Quantified(int depth) {
    const size_t at = cursor_.at();
    size_t num_complements = 0;
    for (; cursor_.Take("~"); SkipSpace()) ++num_complements;
    NodeId node = Atom(depth);
    if (num_complements % 2 == 1) node = Add({.kind = Kind::kNot, .at = at, .children = {node}});
    uint32_t min = 0;
    uint32_t max = 0;
    for (int num_quantifiers = 0; Quantifier(min, max); ++num_quantifiers) {
      if (num_quantifiers == GrammarTree::kMaxDepth) cursor_.Fail("too many quantifiers");
      node = Add({.kind = Kind::kRepeat, .at = at, .min = min, .max = max, .children = {node}});
    }
    return node;
  }

  bool Quantifier(uint32_t& min, uint32_t& max) {
    SkipSpace();
    if (AtStatement()) return false;  // ? may begin a definition
    min = 0;
    max = GrammarBuilder::kUnbounded;
    if (cursor_.Take("*")) return true;
    if (cursor_.Take("+")) {
      min = 1;
      return true;
    }
    if (cursor_.Take("?")) {
      max = 1;
      return true;
    }
    if (cursor_.Take("{")) {
      cursor_.TakeCounts(min, max);
      return true;
    }
    const size_t start = cursor_.at();
    if (!cursor_.Take("~")) return false;
    SkipBlanks();
    constexpr uint32_t kMaxRepeat = uint32_t{1} << 20;
    const std::optional<uint32_t> low = cursor_.TakeNumber(kMaxRepeat);
    if (!low) {  // a complement
      cursor_.MoveTo(start);
      return false;
    }
    min = max = *low;
    SkipBlanks();
    if (cursor_.Take("..")) {
      SkipBlanks();
      const std::optional<uint32_t> high = cursor_.TakeNumber(kMaxRepeat);
      if (!high) cursor_.Fail("missing number");
      max = *high;
    }
    if (min > max) cursor_.Fail("the bounds of a repetition are in the wrong order");
    return true;
  }

  NodeId Atom(int depth) {
    const size_t start = cursor_.at();
    if (cursor_.Take("(")) {
      const NodeId group = Alternatives(depth + 1);
      if (!cursor_.Take(")")) cursor_.FailAt(start, "missing ) of the group");
      return group;
    }
    if (cursor_.Take("[")) {
      const NodeId group = Alternatives(depth + 1);
      if (!cursor_.Take("]")) cursor_.FailAt(start, "missing ] of the group");
      return Add({.kind = Kind::kRepeat, .at = start, .min = 0, .max = 1, .children = {group}});
    }
    if (cursor_.LooksAt("\"")) return StringOrRange(start);
    if (cursor_.Take("/")) return Pattern(start);
    if (cursor_.LooksAt("<")) return Token(start);
    if (cursor_.Take("@")) cursor_.FailAt(start, "other grammars cannot be named");
    if (cursor_.Take("%json")) {
      SkipSpace();
      return Add({.kind = Kind::kJson, .at = start, .text = std::string(TakeJson())});
    }
    if (cursor_.Take("%regex")) return Substring(start);
    const std::string name(cursor_.TakeName());
    if (name.empty()) cursor_.Fail("unexpected character");
    if (cursor_.LooksAt("::")) cursor_.Fail("parameters of rules are not supported");
    return Add({.kind = Kind::kName, .at = start, .text = name});
  }

  std::string String() {
    const size_t start = cursor_.at();
    cursor_.Take("\"");
    std::string text;
    while (!cursor_.Take("\"")) {
      if (cursor_.AtEnd() || cursor_.LooksAt("\n")) cursor_.FailAt(start, "missing \" at the end of the text");
      tokenizer::AppendCodePoint(Character(), text);
    }
    return text;
  }

  char32_t Character() {
    const char32_t c = cursor_.TakeCodePoint();
    if (c != '\\') return c;
    const char32_t escaped = cursor_.TakeCodePoint();
    switch (escaped) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'f':
        return '\f';
      case 'b':
        return '\b';
      case 'v':
        return '\v';
      case 'x':
        return cursor_.TakeHex(2);
      case 'u':
        return IsHighSurrogate() ? SurrogatePair() : cursor_.TakeHex(4);
      case 'U':
        return cursor_.TakeHex(8);
      case '\\':
      case '"':
      case '\'':
      case '/':
        return escaped;
      default:
        cursor_.Fail("unknown escape");
    }
  }

  bool IsHighSurrogate() const {
    const char d = static_cast<char>(cursor_.Peek() | 0x20);
    const char digit = static_cast<char>(cursor_.Peek(1) | 0x20);
    return d == 'd' && (digit == '8' || digit == '9' || digit == 'a' || digit == 'b');
  }

  char32_t SurrogatePair() {
    const auto digits = [&] {
      char32_t value = 0;
      for (int i = 0; i < 4; ++i) {
        const char c = cursor_.Peek();
        const auto digit =
            std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c | 0x20) : c);
        if (c == '\0' || digit == std::string_view::npos) cursor_.Fail("missing hexadecimal digit");
        value = value * 16 + static_cast<char32_t>(digit);
        cursor_.TakeCodePoint();
      }
      return value;
    };
    const char32_t high = digits();
    cursor_.Expect("\\u");
    const char32_t low = digits();
    if (low < 0xDC00 || low > 0xDFFF) cursor_.Fail("invalid code point");
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
  }

  NodeId StringOrRange(size_t start) {
    std::string first = String();
    if (cursor_.Take("i")) {
      return Add({.kind = Kind::kString, .at = start, .text = std::move(first), .ignores_case = true});
    }
    const size_t end = cursor_.at();
    SkipBlanks();
    if (!cursor_.Take("..")) {
      cursor_.MoveTo(end);
      return Add({.kind = Kind::kString, .at = start, .text = std::move(first)});
    }
    SkipBlanks();
    if (!cursor_.LooksAt("\"")) cursor_.Fail("missing the end of the range");
    const std::string last = String();
    const auto is_single = [](const std::string& text) { return tokenizer::CountCodePoints(text) == 1; };
    if (!is_single(first) || !is_single(last)) cursor_.FailAt(start, "the ends of a range must be single characters");
    const char32_t low = tokenizer::CodePointAt(first, 0).value;
    const char32_t high = tokenizer::CodePointAt(last, 0).value;
    if (low > high) cursor_.FailAt(start, "the ends of a range are in the wrong order");
    return Add({.kind = Kind::kCodePoints, .at = start, .min = low, .max = high});
  }

  NodeId Pattern(size_t start) {
    std::string pattern;
    while (!cursor_.Take("/")) {
      if (cursor_.AtEnd() || cursor_.LooksAt("\n")) cursor_.FailAt(start, "missing / at the end of the pattern");
      const size_t at = cursor_.at();
      if (cursor_.Take("\\/")) {
        pattern += '/';
        continue;
      }
      if (cursor_.Take("\\") && cursor_.AtEnd()) continue;
      cursor_.TakeCodePoint();
      pattern += cursor_.TextFrom(at);
    }
    std::string flags;
    for (char c = cursor_.Peek(); IsLower(c); c = cursor_.Peek()) {
      if (std::string_view("imsxu").find(c) == std::string_view::npos) cursor_.Fail("unknown flag of a pattern");
      if (c != 'u') flags += c;
      cursor_.TakeCodePoint();
    }
    if (!flags.empty()) pattern = "(?" + flags + ":" + pattern + (flags.find('x') != flags.npos ? "\n)" : ")");
    return Add({.kind = Kind::kPattern, .at = start, .text = std::move(pattern)});
  }

  NodeId Token(size_t start) {
    LarkDocument::Node node{.kind = Kind::kTokenIds, .at = start};
    if (cursor_.Take("<[*]>")) {
      node.is_complement = true;  // of no token
      return Add(std::move(node));
    }
    if (!cursor_.Take("<[")) {
      while (!cursor_.Take(">")) {
        if (cursor_.AtEnd() || cursor_.LooksAt("\n")) cursor_.FailAt(start, "missing > of the token");
        cursor_.TakeCodePoint();
      }
      return Add({.kind = Kind::kToken, .at = start, .text = std::string(cursor_.TextFrom(start))});
    }
    node.is_complement = cursor_.Take("^");
    do {
      SkipBlanks();
      constexpr uint32_t kMaxId = std::numeric_limits<int32_t>::max();
      const std::optional<uint32_t> first = cursor_.TakeNumber(kMaxId);
      if (!first) cursor_.Fail("missing the id of a token");
      std::optional<uint32_t> last = first;
      if (cursor_.Take("-")) last = cursor_.TakeNumber(kMaxId);
      if (!last || *last < *first) cursor_.Fail("invalid range of tokens");
      node.ranges.emplace_back(static_cast<int32_t>(*first), static_cast<int32_t>(*last));
      SkipBlanks();
    } while (cursor_.Take(","));
    cursor_.Expect("]>");
    return Add(std::move(node));
  }

  // Reads an object up to its closing brace.
  std::string_view TakeJson() {
    const size_t start = cursor_.at();
    if (!cursor_.LooksAt("{")) cursor_.Fail("missing a JSON object");
    int depth = 0;
    bool is_quoted = false;
    do {
      if (cursor_.AtEnd()) cursor_.FailAt(start, "missing } of the JSON object");
      const char32_t c = cursor_.TakeCodePoint();
      if (is_quoted) {
        if (c == '\\' && !cursor_.AtEnd()) cursor_.TakeCodePoint();
        if (c == '"') is_quoted = false;
        continue;
      }
      if (c == '"') is_quoted = true;
      if (c == '{' && ++depth > kMaxJsonDepth) {
        cursor_.FailAt(start, "nested too deeply (limit " + std::to_string(kMaxJsonDepth) + ")");
      }
      if (c == '}') --depth;
    } while (depth > 0);
    return cursor_.TextFrom(start);
  }

  Json ParseJson(std::string_view text, size_t at) const {
    const auto is_deep = [&](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxJsonDepth) cursor_.FailAt(at, "nested too deeply (limit " + std::to_string(kMaxJsonDepth) + ")");
      return true;
    };
    try {
      return Json::parse(text, is_deep);
    } catch (const Json::exception&) {
      cursor_.FailAt(at, "invalid JSON");
    }
  }

  NodeId Substring(size_t start) {
    SkipSpace();
    const Json json = ParseJson(TakeJson(), start);
    LarkDocument::Node node{.kind = Kind::kSubstring, .at = start};
    const auto it = json.begin();
    if (json.size() == 1 && it.key() == "substring_chars" && it->is_string()) {
      const std::string text = it->get<std::string>();
      for (size_t i = 0; i < text.size();) {
        const size_t length = tokenizer::CodePointAt(text, i).length;
        node.texts.push_back(text.substr(i, length));
        i += length;
      }
    } else if (json.size() == 1 && it.key() == "substring_chunks" && it->is_array() &&
               std::ranges::all_of(*it, [](const Json& chunk) { return chunk.is_string(); })) {
      node.texts = it->get<std::vector<std::string>>();
    } else {
      cursor_.FailAt(start, "%regex supports only substring_chunks and substring_chars");
    }
    return Add(std::move(node));
  }

  TextCursor cursor_;
  LarkDocument document_;
};

}  // namespace

bool IsLarkTerminal(std::string_view name) {
  const size_t first = name.find_first_not_of('_');
  return first != name.npos && IsUpper(name[first]);
}

LarkDocument ReadLark(std::string_view text) { return LarkReader(text).Read(); }

}  // namespace vllm
