#include "engine/structured_output/patterns/pattern_tree.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "engine/config/errors.h"
#include "engine/structured_output/patterns/character_class.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

using Kind = PatternTree::Kind;

// The largest bound of a counted repetition, which is a counter and needs no space.
constexpr uint32_t kMaxRepeat = uint32_t{1} << 20;

class Parser {
 public:
  Parser(std::string_view pattern, PatternSyntax syntax)
      : pattern_(pattern), syntax_(syntax), is_ecma_(syntax == PatternSyntax::kEcma) {}

  PatternTree Parse() {
    if (pattern_.size() > PatternTree::kMaxBytes) {
      throw RequestError("too long (" + std::to_string(pattern_.size()) + " bytes, limit " +
                         std::to_string(PatternTree::kMaxBytes) + ")");
    }
    if (!tokenizer::IsValidUtf8(pattern_)) throw RequestError("not valid UTF-8");
    if (pattern_.find('\0') != pattern_.npos) throw RequestError("contains a NUL byte");
    tree_.root = Alternatives(0);
    if (!AtEnd()) Fail("unmatched )");
    return std::move(tree_);
  }

 private:
  struct Flags {
    bool ignores_case = false;
    bool dot_matches_newline = false;
    bool is_multi_line = false;
    bool ignores_space = false;
  };
  // One character of a class, or a class in it.
  struct BracketItem {
    std::optional<char32_t> character;
    CodePointSet set;
  };

  [[noreturn]] void Fail(const std::string& why) const {
    const std::string_view before = pattern_.substr(0, at_);
    const auto num = std::ranges::count_if(before, [](char c) { return !tokenizer::IsUtf8Continuation(c); });
    throw RequestError(why + " at character " + std::to_string(num + 1));
  }

  bool AtEnd() const { return at_ == pattern_.size(); }
  bool LooksAt(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool Take(std::string_view text) {
    if (!LooksAt(text)) return false;
    at_ += text.size();
    return true;
  }
  char32_t TakeCodePoint() {
    if (AtEnd()) Fail("unexpected end");
    const tokenizer::CodePoint c = tokenizer::CodePointAt(pattern_, at_);
    at_ += c.length;
    return c.value;
  }

  uint32_t Add(PatternTree::Node node) {
    if (tree_.nodes.size() == PatternTree::kMaxNodes) {
      throw RequestError("too many parts (limit " + std::to_string(PatternTree::kMaxNodes) + ")");
    }
    node.has_lookahead =
        node.kind == Kind::kLookahead || node.kind == Kind::kNegativeLookahead ||
        std::ranges::any_of(node.children, [&](uint32_t child) { return tree_.nodes[child].has_lookahead; });
    tree_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(tree_.nodes.size() - 1);
  }
  uint32_t Add(Kind kind, std::vector<uint32_t> children) {
    PatternTree::Node node;
    node.kind = kind;
    node.children = std::move(children);
    return Add(std::move(node));
  }
  // `set` is the whole class: where the case is ignored, it has every case of its code points.
  uint32_t AddClass(CodePointSet set) {
    CountRanges(set);
    PatternTree::Node node;
    node.kind = Kind::kClass;
    node.set = std::move(set);
    return Add(std::move(node));
  }
  uint32_t AddCharacter(char32_t c) { return AddClass(Folded({{c, c}})); }

  // A complement is taken of the folded set: (?i)[^a] and (?i)\W do not match what (?i)[a] and (?i)\w match.
  CodePointSet Folded(CodePointSet set) const { return flags_.ignores_case ? FoldCase(set) : set; }
  CodePointSet Folded(const CodePointSet& set, bool negated) const {
    return negated ? Folded(set).Complement() : Folded(set);
  }

  // Bounds the time for sets. A property such as \pL has hundreds of ranges.
  void CountRanges(const CodePointSet& set) {
    num_ranges_ += set.ranges().size();
    if (num_ranges_ > PatternTree::kMaxRanges) {
      Fail("too many ranges of characters (limit " + std::to_string(PatternTree::kMaxRanges) + ")");
    }
  }

  uint32_t Alternatives(int depth) {
    if (depth > PatternTree::kMaxDepth)
      Fail("nested too deeply (limit " + std::to_string(PatternTree::kMaxDepth) + ")");
    const Flags outer = flags_;
    std::vector<uint32_t> alternatives = {Sequence(depth)};
    while (Take("|")) alternatives.push_back(Sequence(depth));
    flags_ = outer;
    return alternatives.size() == 1 ? alternatives[0] : Add(Kind::kAlternatives, std::move(alternatives));
  }

  uint32_t Sequence(int depth) {
    std::vector<uint32_t> parts;
    while (true) {
      SkipSpace();
      if (AtEnd() || LooksAt("|") || LooksAt(")")) break;
      if (syntax_ == PatternSyntax::kRe2 && Take("\\Q")) {
        Quote(parts);
        continue;
      }
      if (const std::optional<uint32_t> atom = Atom(depth)) parts.push_back(Quantified(*atom));
    }
    return parts.size() == 1 ? parts[0] : Add(Kind::kSequence, std::move(parts));
  }

  // Reads the rest of \Q...\E. A quantifier after it repeats only the last character, as in RE2.
  void Quote(std::vector<uint32_t>& parts) {
    const size_t begin = parts.size();
    while (!AtEnd() && !Take("\\E")) parts.push_back(AddCharacter(TakeCodePoint()));
    if (parts.size() > begin) parts.back() = Quantified(parts.back());
  }

  void SkipSpace() {
    if (!flags_.ignores_space) return;
    while (!AtEnd()) {
      if (std::string_view(" \t\n\r\f\v").find(pattern_[at_]) != std::string_view::npos) {
        ++at_;
      } else if (Take("#")) {
        while (!AtEnd() && !Take("\n")) ++at_;
      } else {
        return;
      }
    }
  }

  // Returns nullopt if the atom only sets flags.
  std::optional<uint32_t> Atom(int depth) {
    if (Take("(")) return Group(depth);
    if (Take("[")) return AddClass(Bracket());
    if (Take(".")) {
      if (flags_.dot_matches_newline) return AddClass(CodePointSet::All());
      const CodePointSet line_ends =
          is_ecma_ ? CodePointSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}} : CodePointSet{{'\n', '\n'}};
      return AddClass(line_ends.Complement());
    }
    if (LooksAt("^") || LooksAt("$")) {
      if (flags_.is_multi_line) Fail("^ and $ are not supported with the flag m");
      return Add(pattern_[at_++] == '^' ? Kind::kStart : Kind::kEnd, {});
    }
    if (LooksAt("*") || LooksAt("+") || LooksAt("?")) Fail("nothing to repeat");
    // Other braces and brackets stand for themselves, as in ECMA-262 without the u flag.
    if (LooksAt("{") && Counts(nullptr, nullptr)) Fail("nothing to repeat");
    if (LooksAt("\\")) return Escape();
    return AddCharacter(TakeCodePoint());
  }

  std::optional<uint32_t> Group(int depth) {
    Kind lookahead = Kind::kEmpty;
    const Flags outer = flags_;
    if (Take("?")) {
      if (Take("=")) {
        lookahead = Kind::kLookahead;
      } else if (Take("!")) {
        lookahead = Kind::kNegativeLookahead;
      } else if (LooksAt("<=") || LooksAt("<!")) {
        Fail("look-behind is not supported");
      } else if (Take("<") || (!is_ecma_ && Take("P<"))) {
        const size_t end = pattern_.find('>', at_);
        if (end == pattern_.npos || end == at_) Fail("invalid name of a group");
        at_ = end + 1;
      } else if (!Take(":")) {
        SetFlags();
        if (Take(")")) return std::nullopt;
        if (!Take(":")) Fail("unknown kind of group");
      }
      if (lookahead != Kind::kEmpty && !is_ecma_) Fail("look-ahead is not supported");
      if (lookahead != Kind::kEmpty && ++num_lookaheads_ > PatternTree::kMaxLookaheads) {
        Fail("too many look-aheads (limit " + std::to_string(PatternTree::kMaxLookaheads) + ")");
      }
    }
    const uint32_t inner = Alternatives(depth + 1);
    if (!Take(")")) Fail("missing )");
    flags_ = outer;
    return lookahead == Kind::kEmpty ? inner : Add(lookahead, {inner});
  }

  void SetFlags() {
    bool value = true;
    for (; !AtEnd() && !LooksAt(":") && !LooksAt(")"); ++at_) {
      switch (pattern_[at_]) {
        case '-':
          value = false;
          break;
        case 'i':
          flags_.ignores_case = value;
          break;
        case 's':
          flags_.dot_matches_newline = value;
          break;
        case 'm':
          flags_.is_multi_line = value;
          break;
        case 'x':
          flags_.ignores_space = value;
          break;
        case 'U':
        case 'u':
          break;  // greedy or not, the language is the same; u is always on
        default:
          Fail("unknown flag of a group");
      }
    }
  }

  // Reads {m}, {m,} or {m,n}. Returns false and stays if there is none.
  bool Counts(uint32_t* min, uint32_t* max) {
    const size_t start = at_;
    const auto number = [&]() -> std::optional<uint32_t> {
      uint64_t value = 0;
      const size_t first = at_;
      for (; !AtEnd() && pattern_[at_] >= '0' && pattern_[at_] <= '9'; ++at_) {
        const uint64_t longer = value * 10 + static_cast<uint64_t>(pattern_[at_] - '0');
        value = std::min<uint64_t>(RegexStore::kUnbounded - 1, longer);  // too large, but not without a bound
      }
      if (at_ == first) return std::nullopt;
      // RE2 reads {01} as text.
      if (syntax_ == PatternSyntax::kRe2 && at_ - first > 1 && pattern_[first] == '0') return std::nullopt;
      return static_cast<uint32_t>(value);
    };
    std::optional<uint32_t> low, high;
    bool is_valid = Take("{") && (low = number()).has_value();
    if (is_valid && Take(",")) {
      high = LooksAt("}") ? RegexStore::kUnbounded : number();
      is_valid = high.has_value();
    } else {
      high = low;
    }
    if (!is_valid || !Take("}") || min == nullptr) {
      at_ = start;
      return is_valid && min == nullptr;
    }
    if (*low > *high) Fail("the bounds of a repetition are in the wrong order");
    if (*low > kMaxRepeat || (*high > kMaxRepeat && *high != RegexStore::kUnbounded)) {
      Fail("a repetition is too large (limit " + std::to_string(kMaxRepeat) + ")");
    }
    *min = *low;
    *max = *high;
    return true;
  }

  uint32_t Quantified(uint32_t atom) {
    for (int num_quantifiers = 0;; ++num_quantifiers) {
      SkipSpace();
      uint32_t min = 0;
      uint32_t max = RegexStore::kUnbounded;
      if (Take("+")) {
        min = 1;
      } else if (Take("?")) {
        max = 1;
      } else if (!Take("*") && !Counts(&min, &max)) {
        return atom;
      }
      // The tree gets one level deeper for each of them.
      if (num_quantifiers == PatternTree::kMaxDepth) {
        Fail("too many quantifiers in a row (limit " + std::to_string(PatternTree::kMaxDepth) + ")");
      }
      const Kind kind = tree_.nodes[atom].kind;
      if (kind == Kind::kLookahead || kind == Kind::kNegativeLookahead) Fail("look-ahead cannot be repeated");
      Take("?");  // lazy: the same texts
      PatternTree::Node node;
      node.kind = Kind::kRepeat;
      node.children = {atom};
      node.min = min;
      node.max = max;
      atom = Add(std::move(node));
      if (is_ecma_ && (LooksAt("*") || LooksAt("+") || LooksAt("?") || Counts(nullptr, nullptr))) {
        Fail("nothing to repeat");
      }
    }
  }

  std::optional<uint32_t> Escape() {
    const size_t start = at_;
    ++at_;
    if (AtEnd()) Fail("\\ at the end");
    const char c = pattern_[at_];
    if (c == 'b' || c == 'B') Fail("word boundaries are not supported");
    if ((c >= '1' && c <= '9') || (c == 'k' && is_ecma_)) Fail("backreferences are not supported");
    if (!is_ecma_ && (c == 'A' || c == 'z')) {
      ++at_;
      return Add(c == 'A' ? Kind::kStart : Kind::kEnd, {});
    }
    at_ = start;
    return AddClass(Folded(EscapedSet()));
  }

  // Reads an escape of one character or of a class.
  CodePointSet EscapedSet() {
    ++at_;  // the backslash
    const char32_t c = TakeCodePoint();
    switch (c) {
      case 'd':
      case 'w':
      case 's':
        return NamedClass(static_cast<char>(c), false);
      case 'D':
      case 'W':
      case 'S':
        return NamedClass(static_cast<char>(c - 'A' + 'a'), true);
      case 'p':
      case 'P':
        return Property(c == 'P');
      default: {
        const char32_t value = EscapedCharacter(c);
        return {{value, value}};
      }
    }
  }

  CodePointSet NamedClass(char letter, bool negated) {
    const CodePointSet set = EscapeClass(letter, syntax_);
    CountRanges(set);
    return Folded(set, negated);
  }

  CodePointSet Property(bool negated) {
    std::string_view name;
    if (Take("{")) {
      const size_t end = pattern_.find('}', at_);
      if (end == pattern_.npos) Fail("missing }");
      name = pattern_.substr(at_, end - at_);
      at_ = end + 1;
    } else {
      if (is_ecma_ || AtEnd()) Fail("missing {");
      name = pattern_.substr(at_, 1);
      ++at_;
    }
    if (!is_ecma_ && name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    const std::optional<CodePointSet> set = UnicodeClass(name);
    if (!set) Fail("unknown Unicode property");
    CountRanges(*set);
    return Folded(*set, negated);
  }

  std::optional<char32_t> HexDigits(size_t num_digits) {
    char32_t value = 0;
    if (pattern_.size() - at_ < num_digits) return std::nullopt;
    for (size_t i = 0; i < num_digits; ++i) {
      const char c = pattern_[at_ + i];
      const char lower = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9') {
        value = value * 16 + static_cast<char32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + static_cast<char32_t>(lower - 'a' + 10);
      } else {
        return std::nullopt;
      }
    }
    at_ += num_digits;
    return value;
  }

  char32_t BracedHex() {
    const size_t end = pattern_.find('}', at_);
    if (end == pattern_.npos || end == at_ || end - at_ > 8) Fail("invalid code point");
    const std::optional<char32_t> value = HexDigits(end - at_);
    if (!value || !Take("}")) Fail("invalid code point");
    return CheckCodePoint(*value);
  }

  char32_t CheckCodePoint(char32_t value) const {
    if (value > CodePointSet::kMax || (value >= 0xD800 && value <= 0xDFFF)) Fail("invalid code point");
    return value;
  }

  // `c` follows a backslash.
  char32_t EscapedCharacter(char32_t c) {
    switch (c) {
      case 't':
        return '\t';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'a':
        if (!is_ecma_) return '\a';
        break;
      case '0':
        return Octal();
      case 'c': {
        if (!is_ecma_ || AtEnd()) break;
        const char letter = static_cast<char>(pattern_[at_] | 0x20);
        if (letter < 'a' || letter > 'z') break;
        ++at_;
        return static_cast<char32_t>(letter - 'a' + 1);
      }
      case 'x': {
        if (!is_ecma_ && Take("{")) return BracedHex();
        if (const std::optional<char32_t> value = HexDigits(2)) return *value;
        break;
      }
      case 'u': {
        if (Take("{")) return BracedHex();
        std::optional<char32_t> value = HexDigits(4);
        if (!value) break;
        if (*value >= 0xD800 && *value <= 0xDBFF && Take("\\u")) {
          const std::optional<char32_t> low = HexDigits(4);
          if (!low || *low < 0xDC00 || *low > 0xDFFF) Fail("invalid code point");
          return 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
        }
        return CheckCodePoint(*value);
      }
      default:
        break;
    }
    const bool is_word = c < 0x80 && ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'));
    // Without the u flag, ECMA-262 lets every other character stand for itself. Patterns in schemas use \- and \_ so.
    if (is_word || c >= 0x80) Fail("unknown escape");
    return c;
  }

  // Reads the rest of \0. Only RE2 has more digits, Rust has no octal numbers at all.
  char32_t Octal() {
    char32_t value = 0;
    for (int i = 0; i < 2 && syntax_ == PatternSyntax::kRe2 && !AtEnd() && pattern_[at_] >= '0' && pattern_[at_] <= '7';
         ++i) {
      value = value * 8 + static_cast<char32_t>(pattern_[at_++] - '0');
    }
    if (syntax_ == PatternSyntax::kRust) Fail("unknown escape");
    if (is_ecma_ && !AtEnd() && pattern_[at_] >= '0' && pattern_[at_] <= '9') Fail("invalid escape");
    return value;
  }

  // Reads a class after its [. Rust ignores space also in classes; RE2 and ECMA-262 do not have the flag x.
  CodePointSet Bracket() {
    const bool negated = Take("^");
    CodePointSet set;
    std::vector<CodePointRange> ranges;
    const auto add = [&](const BracketItem& item) {
      if (item.character) {
        ranges.push_back({*item.character, *item.character});
      } else {
        set = set.Union(item.set);
      }
    };
    for (bool is_first = true;; is_first = false) {
      SkipSpace();
      if (AtEnd()) Fail("missing ]");
      // In ECMA-262, [] matches nothing and [^] everything. Elsewhere a first ] stands for itself.
      if (LooksAt("]") && (is_ecma_ || !is_first)) break;
      if (!is_ecma_ && LooksAt("[:")) {
        set = set.Union(TakePosixClass());
        continue;
      }
      // Rust reads nested classes and operators, which are ordinary characters for RE2.
      if (syntax_ == PatternSyntax::kRust && (LooksAt("[") || LooksAt("&&") || LooksAt("--") || LooksAt("~~"))) {
        Fail("nested classes and operators of classes are not supported");
      }
      const BracketItem first = TakeBracketItem();
      SkipSpace();
      if (!LooksAt("-") || pattern_.substr(at_).starts_with("-]")) {
        add(first);
        continue;
      }
      ++at_;
      SkipSpace();
      if (AtEnd()) Fail("missing ]");
      const BracketItem last = TakeBracketItem();
      if (!first.character || !last.character) {
        if (!is_ecma_) Fail("a class cannot be the end of a range");
        // Without the u flag, ECMA-262 lets this minus stand for itself. Patterns in schemas use [\w-.] so.
        add(first);
        ranges.push_back({'-', '-'});
        add(last);
        continue;
      }
      if (*first.character > *last.character) Fail("the ends of a range are in the wrong order");
      ranges.push_back({*first.character, *last.character});
    }
    Take("]");
    return Folded(set.Union(CodePointSet(std::move(ranges))), negated);
  }

  CodePointSet TakePosixClass() {
    const size_t end = pattern_.find(":]", at_);
    if (end == pattern_.npos) Fail("missing :]");
    std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    const bool is_complement = name.starts_with('^');
    if (is_complement) name.remove_prefix(1);
    const std::optional<CodePointSet> set = PosixClass(name);
    if (!set) Fail("unknown class");
    at_ = end + 2;
    return Folded(*set, is_complement);
  }

  BracketItem TakeBracketItem() {
    if (is_ecma_ && Take("\\b")) return {'\b', {}};
    if (!LooksAt("\\")) return {TakeCodePoint(), {}};
    const char next = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    const CodePointSet set = EscapedSet();
    if (std::string_view("dDwWsSpP").find(next) != std::string_view::npos) return {std::nullopt, set};
    return {set.ranges()[0].first, {}};
  }

  std::string_view pattern_;
  PatternSyntax syntax_;
  bool is_ecma_;
  size_t at_ = 0;
  Flags flags_;
  size_t num_ranges_ = 0;
  size_t num_lookaheads_ = 0;
  PatternTree tree_;
};

}  // namespace

PatternTree ParsePatternTree(std::string_view pattern, PatternSyntax syntax) { return Parser(pattern, syntax).Parse(); }

}  // namespace vllm
