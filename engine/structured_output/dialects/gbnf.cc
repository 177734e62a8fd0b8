#include "engine/structured_output/dialects/gbnf.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/structured_output/dialects/grammar_tree.h"
#include "engine/structured_output/dialects/text_cursor.h"
#include "engine/structured_output/regex/code_point_set.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

using NodeId = GrammarTree::NodeId;

class GbnfReader {
 public:
  GbnfReader(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary)
      : builder_(builder), vocabulary_(vocabulary), cursor_(text) {}

  SymbolId Read() {
    SkipSpace();
    while (!cursor_.AtEnd()) {
      const size_t start = cursor_.at();
      const std::string name(cursor_.TakeName());
      if (name.empty()) cursor_.Fail("missing the name of a rule");
      SkipSpace();
      if (cursor_.LooksAt("[")) cursor_.Fail("options of a rule are not supported");
      cursor_.Expect("::=");
      Rule& rule = RuleOf(name, start);
      if (rule.is_defined) cursor_.FailAt(start, "the rule " + name + " is defined twice");
      rule.is_defined = true;
      const uint32_t index = rule.index;  // reading a body moves the rules
      tree_.SetRule(index, Alternatives(0));
      if (!cursor_.AtEnd() && !AtDefinition()) cursor_.Fail("unexpected character");
    }
    for (const std::string& name : order_) {
      const Rule& rule = rules_.at(name);
      if (!rule.is_defined) cursor_.FailAt(rule.first_use, "the rule " + name + " is not defined");
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) throw RequestError("grammar: has no rule root");
    return AddGrammarTree(builder_, tree_, tree_.AddReference(root->second.index));
  }

 private:
  struct Rule {
    uint32_t index = 0;
    bool is_defined = false;
    size_t first_use = 0;
  };

  Rule& RuleOf(const std::string& name, size_t at) {
    const auto [it, is_new] = rules_.try_emplace(name);
    if (is_new) {
      it->second.index = tree_.AddRule();
      it->second.first_use = at;
      order_.push_back(name);
    }
    return it->second;
  }

  void SkipSpace() {
    while (true) {
      const char c = cursor_.Peek();
      if (c == '#') {
        cursor_.SkipLine();
      } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        cursor_.Take(std::string_view(&c, 1));
      } else {
        return;
      }
    }
  }

  // Returns whether a name and ::= come next.
  bool AtDefinition() {
    const size_t start = cursor_.at();
    const bool has_name = !cursor_.TakeName().empty();
    SkipSpace();
    const bool is_definition = has_name && cursor_.LooksAt("::=");
    cursor_.MoveTo(start);
    return is_definition;
  }

  NodeId Alternatives(int depth) {
    if (depth > GrammarTree::kMaxDepth) {
      cursor_.Fail("nested too deeply (limit " + std::to_string(GrammarTree::kMaxDepth) + ")");
    }
    std::vector<NodeId> alternatives = {Sequence(depth)};
    while (cursor_.Take("|")) alternatives.push_back(Sequence(depth));
    return tree_.AddAlternatives(std::move(alternatives));
  }

  NodeId Sequence(int depth) {
    std::vector<NodeId> parts;
    while (true) {
      SkipSpace();
      if (cursor_.AtEnd() || cursor_.LooksAt("|") || cursor_.LooksAt(")") || AtDefinition()) break;
      parts.push_back(Quantified(depth));
    }
    return tree_.AddSequence(std::move(parts));
  }

  // Reads one part with the quantifiers after it.
  NodeId Quantified(int depth) {
    const size_t start = cursor_.at();
    std::optional<NamedTokens> excluded;
    std::optional<NodeId> part;
    if (cursor_.Take("!")) {
      if (!cursor_.LooksAt("<")) cursor_.Fail("missing < after !");
      excluded = Tokens();
    } else {
      part = Part(depth);
    }
    uint32_t min = 0;
    uint32_t max = 0;
    for (int num_quantifiers = 0; Quantifier(min, max); ++num_quantifiers) {
      if (num_quantifiers == GrammarTree::kMaxDepth) cursor_.Fail("too many quantifiers");
      if (part) {
        part = tree_.AddRepeat(*part, min, max);
      } else if (min <= 1 && max == GrammarBuilder::kUnbounded) {
        part = AddAnyTokens(builder_, tree_, vocabulary_, *excluded, min);
      } else {
        break;
      }
    }
    // One token may have any number of bytes, so text does not show where it ends.
    if (!part) cursor_.FailAt(start, "! must be repeated with * or +: single tokens are not told apart in text");
    return *part;
  }

  bool Quantifier(uint32_t& min, uint32_t& max) {
    SkipSpace();
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
    if (!cursor_.Take("{")) return false;
    cursor_.TakeCounts(min, max);
    return true;
  }

  NodeId Part(int depth) {
    const size_t start = cursor_.at();
    if (cursor_.Take("(")) {
      if (cursor_.LooksAt("=")) cursor_.Fail("look-ahead is not supported");
      const NodeId group = Alternatives(depth + 1);
      if (!cursor_.Take(")")) cursor_.FailAt(start, "missing ) of the group");
      return group;
    }
    if (cursor_.Take("\"")) return tree_.AddRegex(Literal(start));
    if (cursor_.Take("[")) return tree_.AddRegex(Class(start));
    if (cursor_.Take(".")) return AddCodePoints(CodePointSet::All());
    if (cursor_.LooksAt("<")) return AddOneOfTokens(builder_, tree_, Tokens());
    const std::string name(cursor_.TakeName());
    if (name.empty()) cursor_.Fail("unexpected character");
    return tree_.AddReference(RuleOf(name, start).index);
  }

  NodeId AddCodePoints(const CodePointSet& set) {
    return tree_.AddRegex(CodePointsAsRegex(builder_.regexes(), set, TextSpelling::kUtf8));
  }

  RegexId Literal(size_t start) {
    std::string bytes;
    while (!cursor_.Take("\"")) {
      if (cursor_.AtEnd() || cursor_.LooksAt("\n")) cursor_.FailAt(start, "missing \" at the end of the text");
      tokenizer::AppendCodePoint(Character(), bytes);
    }
    return builder_.regexes().Literal(bytes);
  }

  RegexId Class(size_t start) {
    const bool is_complement = cursor_.Take("^");
    std::vector<CodePointRange> ranges;
    while (!cursor_.Take("]")) {
      if (cursor_.AtEnd()) cursor_.FailAt(start, "missing ] of the class");
      const char32_t first = Character();
      char32_t last = first;
      if (cursor_.LooksAt("-") && cursor_.Peek(1) != ']') {
        cursor_.Take("-");
        last = Character();
        if (first > last) cursor_.Fail("the ends of a range are in the wrong order");
      }
      ranges.push_back({first, last});
    }
    const CodePointSet set(std::move(ranges));
    return CodePointsAsRegex(builder_.regexes(), is_complement ? set.Complement() : set, TextSpelling::kUtf8);
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
      case 'x':
        return cursor_.TakeHex(2);
      case 'u':
        return cursor_.TakeHex(4);
      case 'U':
        return cursor_.TakeHex(8);
      case '\\':
      case '"':
      case '\'':
      case '[':
      case ']':
      case '-':
      case '^':
      case '/':
        return escaped;
      default:
        cursor_.Fail("unknown escape");
    }
  }

  // Reads <name> or <[id]>.
  NamedTokens Tokens() {
    const size_t start = cursor_.at();
    try {
      if (cursor_.Take("<[")) {
        const std::optional<uint32_t> id = cursor_.TakeNumber(std::numeric_limits<int32_t>::max());
        if (!id) cursor_.Fail("missing the id of a token");
        cursor_.Expect("]>");
        return TokensOfRange(vocabulary_, {static_cast<int32_t>(*id), static_cast<int32_t>(*id)});
      }
      while (!cursor_.Take(">")) {
        if (cursor_.AtEnd() || cursor_.LooksAt("\n")) cursor_.FailAt(start, "missing > of the token");
        cursor_.TakeCodePoint();
      }
      return TokensOfName(vocabulary_, cursor_.TextFrom(start));
    } catch (const UnknownTokenError& error) {
      cursor_.FailAt(start, error.what());
    }
  }

  GrammarBuilder& builder_;
  const GrammarVocabulary& vocabulary_;
  TextCursor cursor_;
  GrammarTree tree_;
  std::unordered_map<std::string, Rule> rules_;
  std::vector<std::string> order_;  // the names, by index
};

}  // namespace

SymbolId AddGbnf(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary) {
  return GbnfReader(builder, text, vocabulary).Read();
}

}  // namespace vllm
