#include "engine/structured_output/dialects/gbnf.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/structured_output/regex/code_point_set.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

constexpr int kMaxDepth = 200;
constexpr uint32_t kMaxCount = uint32_t{1} << 20;

class GbnfParser {
 public:
  GbnfParser(std::string_view text, const FindSpecialToken& find_token) : text_(text), find_token_(find_token) {}

  Grammar Parse() {
    if (text_.size() > kMaxGrammarBytes) {
      throw RequestError("grammar: too long (" + std::to_string(text_.size()) + " bytes, limit " +
                         std::to_string(kMaxGrammarBytes) + ")");
    }
    if (!tokenizer::IsValidUtf8(text_)) throw RequestError("grammar: not valid UTF-8");
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    for (SkipSpace(true); at_ < text_.size(); SkipSpace(true)) ParseRule();
    for (const auto& [name, rule] : rules_) {
      if (!rule.is_defined) {
        at_ = rule.first_use;
        Fail("the rule " + Escape(name) + " is not defined");
      }
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) throw RequestError("grammar: has no rule `root`");
    Grammar grammar = builder_.Finish(root->second.symbol);
    if (!grammar.symbol(grammar.start()).productive) throw RequestError("grammar: generates no text");
    return grammar;
  }

 private:
  struct Rule {
    SymbolId symbol = 0;
    bool is_defined = false;
    size_t first_use = 0;
  };
  // A part of a rule: an expression as long as it contains no rule and no special token, else symbols in sequence.
  struct Part {
    bool is_regex = true;
    RegexId regex = RegexStore::kEmpty;
    std::vector<SymbolId> symbols;
  };

  [[noreturn]] void Fail(const std::string& why) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = 1 + std::ranges::count(before, '\n');
    const size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
    const auto column =
        1 + std::ranges::count_if(before.substr(start), [](char c) { return !tokenizer::IsUtf8Continuation(c); });
    throw RequestError("grammar: line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + why);
  }

  bool LooksAt(std::string_view prefix) const { return text_.substr(at_).starts_with(prefix); }
  bool Take(std::string_view prefix) {
    if (!LooksAt(prefix)) return false;
    at_ += prefix.size();
    return true;
  }
  void SkipSpace(bool newlines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || (newlines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return;
      }
    }
  }
  static bool IsNameByte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  }
  std::string_view Name() {
    const size_t start = at_;
    while (at_ < text_.size() && IsNameByte(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  Rule& RuleOf(std::string_view name, size_t where) {
    const auto [it, inserted] = rules_.try_emplace(std::string(name));
    if (inserted) {
      if (rules_.size() > kMaxGrammarRules) Fail("too many rules (limit " + std::to_string(kMaxGrammarRules) + ")");
      it->second.symbol = builder_.AddRule();
      it->second.first_use = where;
    }
    return it->second;
  }

  void ParseRule() {
    const size_t where = at_;
    const std::string_view name = Name();
    if (name.empty()) Fail("expected the name of a rule");
    SkipSpace(false);
    if (!Take("::=")) Fail("expected ::= after the name of a rule");
    {
      Rule& rule = RuleOf(name, where);
      if (std::exchange(rule.is_defined, true)) {
        at_ = where;
        Fail("the rule " + Escape(name) + " is defined twice");
      }
    }
    SkipSpace(true);
    const SymbolId symbol = RuleOf(name, where).symbol;
    for (Part& alternative : Alternatives(0)) builder_.AddAlternative(symbol, Symbols(std::move(alternative)));
    if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') Fail("unexpected character");
  }

  std::vector<SymbolId> Symbols(Part part) {
    if (!part.is_regex) return std::move(part.symbols);
    if (part.regex == RegexStore::kEmpty) return {};
    return {builder_.AddTerminal(part.regex)};
  }

  std::vector<Part> Alternatives(int depth) {
    if (depth > kMaxDepth) Fail("nested too deeply (limit " + std::to_string(kMaxDepth) + ")");
    std::vector<Part> alternatives = {Sequence(depth)};
    while (Take("|")) {
      SkipSpace(true);
      alternatives.push_back(Sequence(depth));
    }
    return alternatives;
  }

  Part Sequence(int depth) {
    Part sequence;
    std::vector<RegexId> run;  // expressions since the last symbol
    const auto end_run = [&] {
      const RegexId regex = builder_.regexes().Concat(run);
      run.clear();
      return regex;
    };
    while (true) {
      SkipSpace(depth > 0);
      std::optional<Part> item = Item(depth);
      if (!item) break;
      *item = Repeated(std::move(*item));
      if (item->is_regex) {
        run.push_back(item->regex);
        continue;
      }
      sequence.is_regex = false;
      if (const RegexId regex = end_run(); regex != RegexStore::kEmpty) {
        sequence.symbols.push_back(builder_.AddTerminal(regex));
      }
      sequence.symbols.insert(sequence.symbols.end(), item->symbols.begin(), item->symbols.end());
    }
    const RegexId regex = end_run();
    if (sequence.is_regex) {
      sequence.regex = regex;
    } else if (regex != RegexStore::kEmpty) {
      sequence.symbols.push_back(builder_.AddTerminal(regex));
    }
    return sequence;
  }

  static Part OfRegex(RegexId regex) {
    Part part;
    part.regex = regex;
    return part;
  }
  static Part OfSymbol(SymbolId symbol) {
    Part part;
    part.is_regex = false;
    part.symbols = {symbol};
    return part;
  }

  std::optional<Part> Item(int depth) {
    RegexStore& store = builder_.regexes();
    if (at_ == text_.size()) return std::nullopt;
    if (Take("\"")) {
      std::string literal;
      while (!Take("\"")) {
        if (at_ == text_.size() || LooksAt("\n")) Fail("missing \"");
        char buffer[4];
        literal.append(buffer, tokenizer::EncodeCodePoint(Character(), buffer));
      }
      return OfRegex(store.Literal(literal));
    }
    if (Take("[")) return OfRegex(CodePointsAsRegex(store, Class(), TextSpelling::kUtf8));
    if (Take(".")) return OfRegex(CodePointsAsRegex(store, CodePointSet::All(), TextSpelling::kUtf8));
    if (Take("(")) {
      std::vector<Part> alternatives = Alternatives(depth + 1);
      SkipSpace(true);
      if (!Take(")")) Fail("missing )");
      return Choice(std::move(alternatives));
    }
    if (Take("!<")) return OfSymbol(Token(true));
    if (Take("<")) return OfSymbol(Token(false));
    const size_t where = at_;
    const std::string_view name = Name();
    if (name.empty()) return std::nullopt;
    // `name ::=` starts the next rule. This happens inside parentheses, which are not closed.
    return OfSymbol(RuleOf(name, where).symbol);
  }

  Part Choice(std::vector<Part> alternatives) {
    const bool is_regex = std::ranges::all_of(alternatives, &Part::is_regex);
    if (is_regex) {
      std::vector<RegexId> regexes;
      for (const Part& part : alternatives) regexes.push_back(part.regex);
      return OfRegex(builder_.regexes().Or(std::move(regexes)));
    }
    if (alternatives.size() == 1) return std::move(alternatives[0]);
    const SymbolId rule = builder_.AddRule();
    for (Part& part : alternatives) builder_.AddAlternative(rule, Symbols(std::move(part)));
    return OfSymbol(rule);
  }

  uint32_t Number() {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) Fail("expected a number");
    if (error != std::errc() || value > kMaxCount)
      Fail("a repetition is too large (limit " + std::to_string(kMaxCount) + ")");
    at_ = static_cast<size_t>(end - text_.data());
    return value;
  }

  Part Repeated(Part part) {
    while (true) {
      SkipSpace(false);
      uint32_t min = 0;
      uint32_t max = RegexStore::kUnbounded;
      if (Take("+")) {
        min = 1;
      } else if (Take("?")) {
        max = 1;
      } else if (Take("{")) {
        min = max = Number();
        if (Take(",")) max = LooksAt("}") ? RegexStore::kUnbounded : Number();
        if (!Take("}")) Fail("missing }");
        if (min > max) Fail("the bounds of a repetition are in the wrong order");
      } else if (!Take("*")) {
        return part;
      }
      if (part.is_regex) {
        part.regex = builder_.regexes().Repeat(part.regex, min, max);
        continue;
      }
      SymbolId item = part.symbols[0];
      if (part.symbols.size() != 1) {
        item = builder_.AddRule();
        builder_.AddAlternative(item, std::move(part.symbols));
      }
      part = OfSymbol(builder_.AddRepeat(item, GrammarBuilder::kNoSymbol, min, max));
    }
  }

  // Reads a character or an escape.
  char32_t Character() {
    const tokenizer::CodePoint c = tokenizer::CodePointAt(text_, at_);
    at_ += c.length;
    if (c.value != '\\') return c.value;
    if (at_ == text_.size()) Fail("\\ at the end");
    const char letter = text_[at_++];
    switch (letter) {
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'x':
        return Hex(2);
      case 'u':
        return Hex(4);
      case 'U':
        return Hex(8);
      default:
        if (std::string_view("\\\"[]-^'/").find(letter) == std::string_view::npos) Fail("unknown escape");
        return static_cast<char32_t>(letter);
    }
  }

  char32_t Hex(size_t num_digits) {
    uint32_t value = 0;
    if (text_.size() - at_ < num_digits) Fail("unexpected end of an escape");
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, first + num_digits, value, 16);
    if (error != std::errc() || end != first + num_digits || value > CodePointSet::kMax ||
        (value >= 0xD800 && value <= 0xDFFF)) {
      Fail("invalid code point");
    }
    at_ += num_digits;
    return value;
  }

  CodePointSet Class() {
    const bool negated = Take("^");
    std::vector<CodePointRange> ranges;
    while (!Take("]")) {
      if (at_ == text_.size()) Fail("missing ]");
      const char32_t first = Character();
      char32_t last = first;
      if (LooksAt("-") && !LooksAt("-]")) {
        ++at_;
        if (at_ == text_.size()) Fail("missing ]");
        last = Character();
      }
      if (first > last) Fail("the ends of a range are in the wrong order");
      ranges.push_back({first, last});
    }
    const CodePointSet set(std::move(ranges));
    return negated ? set.Complement() : set;
  }

  // Reads a special token, after <.
  SymbolId Token(bool negated) {
    const size_t end = text_.find('>', at_);
    if (end == text_.npos || text_.substr(at_, end - at_).find('\n') != std::string_view::npos) Fail("missing >");
    const std::string_view name = text_.substr(at_, end - at_);
    int32_t id = 0;
    if (name.starts_with('[') && name.ends_with(']')) {
      const std::string_view digits = name.substr(1, name.size() - 2);
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id);
      if (error != std::errc() || stop != digits.data() + digits.size() || id < 0) Fail("invalid token id");
    } else if (find_token_) {
      const std::optional<int32_t> found = find_token_(text_.substr(at_ - 1, end + 2 - at_));
      if (!found) Fail("the model has no special token <" + Escape(name) + ">");
      id = *found;
    }
    at_ = end + 1;
    if (!negated) return builder_.AddTokens({{id, id}});
    std::vector<TokenRange> others;
    if (id > 0) others.push_back({0, id - 1});
    others.push_back({id + 1, std::numeric_limits<int32_t>::max()});
    return builder_.AddTokens(std::move(others));
  }

  std::string_view text_;
  const FindSpecialToken& find_token_;
  size_t at_ = 0;
  GrammarBuilder builder_;
  std::unordered_map<std::string, Rule> rules_;
};

}  // namespace

Grammar ParseGbnf(std::string_view text, const FindSpecialToken& find_token) {
  return GbnfParser(text, find_token).Parse();
}

}  // namespace vllm
