#include "engine/structured_output/dialects/lark.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/structured_output/dialects/free_text.h"
#include "engine/structured_output/dialects/grammar_tree.h"
#include "engine/structured_output/dialects/lark_document.h"
#include "engine/structured_output/dialects/text_cursor.h"
#include "engine/structured_output/patterns/character_class.h"
#include "engine/structured_output/patterns/pattern.h"
#include "engine/structured_output/regex/code_point_set.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm {
namespace {

using Kind = LarkDocument::Kind;
using Node = LarkDocument::Node;
using NodeId = LarkDocument::NodeId;

class LarkCompiler {
 public:
  LarkCompiler(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary,
               const JsonSchemaOptions& options)
      : builder_(builder),
        store_(builder.regexes()),
        vocabulary_(vocabulary),
        options_(options),
        cursor_(text),
        document_(ReadLark(text)),
        terminals_(document_.definitions.size()),
        rules_(document_.definitions.size()) {}

  SymbolId Compile() {
    const auto start = document_.by_name.find("start");
    if (start == document_.by_name.end()) throw RequestError("grammar: has no rule start");
    for (uint32_t i = 0; i < document_.definitions.size(); ++i) {
      if (IsLarkTerminal(document_.definitions[i].name)) {
        CompileTerminals(i);
      } else {
        rules_[i] = tree_.AddRule();
      }
    }
    std::vector<RegexId> ignored;
    for (const NodeId node : document_.ignored) {
      CompileTerminalsOf(node);
      ignored.push_back(Terminal(node));
    }
    const RegexId some = store_.Or(std::move(ignored));
    skip_ = document_.ignores_once ? store_.Optional(some) : store_.Star(some);
    for (uint32_t i = 0; i < document_.definitions.size(); ++i) {
      const LarkDocument::Definition& definition = document_.definitions[i];
      if (IsLarkTerminal(definition.name)) continue;
      const bool is_terminal = definition.is_lazy || definition.suffix || definition.stop;
      tree_.SetRule(rules_[i], is_terminal ? Lexeme(WithOptions(definition)) : RulePart(definition.body));
    }
    GrammarTree::NodeId root = tree_.AddReference(rules_[start->second]);
    if (document_.ignores_first) root = tree_.AddSequence({tree_.AddRegex(skip_), root});
    return AddGrammarTree(builder_, tree_, root);
  }

 private:
  [[noreturn]] void Fail(NodeId node, const std::string& why) const { cursor_.FailAt(document_.nodes[node].at, why); }

  // Returns the index of the definition that a node names.
  uint32_t DefinitionOf(NodeId id) const {
    const auto it = document_.by_name.find(document_.nodes[id].text);
    if (it == document_.by_name.end()) Fail(id, "the name " + document_.nodes[id].text + " is not defined");
    return it->second;
  }

  // Returns the terminals that occur below `root`.
  std::vector<uint32_t> TerminalsBelow(NodeId root) const {
    std::vector<uint32_t> terminals;
    std::vector<NodeId> pending = {root};
    while (!pending.empty()) {
      const Node& node = document_.nodes[pending.back()];
      if (node.kind == Kind::kName && IsLarkTerminal(node.text)) terminals.push_back(DefinitionOf(pending.back()));
      pending.pop_back();
      pending.insert(pending.end(), node.children.begin(), node.children.end());
    }
    return terminals;
  }

  void CompileTerminalsOf(NodeId root) {
    for (const uint32_t terminal : TerminalsBelow(root)) CompileTerminals(terminal);
  }

  // Compiles a terminal after those that it uses.
  void CompileTerminals(uint32_t definition) {
    struct Frame {
      uint32_t definition;
      std::vector<uint32_t> uses;
      size_t next = 0;
    };
    if (terminals_[definition].regex) return;
    const auto frame_of = [&](uint32_t i) {
      terminals_[i].is_open = true;
      const LarkDocument::Definition& d = document_.definitions[i];
      Frame frame{i, TerminalsBelow(d.body)};
      for (const std::optional<NodeId>& option : {d.suffix, d.stop}) {
        if (!option) continue;
        const std::vector<uint32_t> more = TerminalsBelow(*option);
        frame.uses.insert(frame.uses.end(), more.begin(), more.end());
      }
      return frame;
    };
    std::vector<Frame> stack;
    stack.push_back(frame_of(definition));
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.uses.size()) {
        terminals_[frame.definition].regex = WithOptions(document_.definitions[frame.definition]);
        terminals_[frame.definition].is_open = false;
        stack.pop_back();
        continue;
      }
      const uint32_t use = frame.uses[frame.next++];
      if (terminals_[use].regex) continue;
      if (terminals_[use].is_open) {
        const LarkDocument::Definition& d = document_.definitions[use];
        cursor_.FailAt(d.at, "the terminal " + d.name + " uses itself, which only rules may");
      }
      stack.push_back(frame_of(use));
    }
  }

  // Returns the body of a definition as one regular expression, with its options.
  RegexId WithOptions(const LarkDocument::Definition& definition) {
    const RegexId body = Terminal(definition.body);
    if (definition.stop) {
      const std::array<RegexId, 3> longer = {body, Terminal(*definition.stop), RegexStore::kEverything};
      return store_.And({body, store_.Not(store_.Concat(longer))});
    }
    if (definition.suffix) return ShortestTexts(store_, store_.Concat(body, Terminal(*definition.suffix)));
    return definition.is_lazy ? ShortestTexts(store_, body) : body;
  }

  // Returns a part of a terminal. REQUIRES: the terminals that it uses are compiled.
  RegexId Terminal(NodeId id) {
    const Node& node = document_.nodes[id];
    switch (node.kind) {
      case Kind::kString:
        return node.ignores_case ? WithoutCase(node.text) : store_.Literal(node.text);
      case Kind::kPattern:
        return Pattern(id);
      case Kind::kCodePoints:
        return CodePointsAsRegex(store_, {{node.min, node.max}}, TextSpelling::kUtf8);
      case Kind::kSubstring:
        return Substring(node.texts);
      case Kind::kName: {
        const uint32_t definition = DefinitionOf(id);
        if (!IsLarkTerminal(node.text)) Fail(id, "the rule " + node.text + " cannot be used in a terminal");
        return *terminals_[definition].regex;
      }
      case Kind::kToken:
      case Kind::kTokenIds:
        Fail(id, "a special token cannot be used in a terminal");
      case Kind::kJson:
        Fail(id, "%json cannot be used in a terminal");
      case Kind::kNot:
        return ComplementOfText(store_, Terminal(node.children[0]), TextSpelling::kUtf8);
      case Kind::kRepeat:
        return store_.Repeat(Terminal(node.children[0]), node.min, node.max);
      case Kind::kSequence:
      case Kind::kAlternatives:
      case Kind::kAnd:
        break;
    }
    std::vector<RegexId> parts;
    for (const NodeId child : node.children) parts.push_back(Terminal(child));
    if (node.kind == Kind::kSequence) return store_.Concat(parts);
    return node.kind == Kind::kAnd ? store_.And(std::move(parts)) : store_.Or(std::move(parts));
  }

  RegexId WithoutCase(std::string_view text) {
    std::vector<RegexId> parts;
    for (size_t i = 0; i < text.size();) {
      const tokenizer::CodePoint c = tokenizer::CodePointAt(text, i);
      i += c.length;
      const auto [it, is_new] = folded_.try_emplace(c.value);
      if (is_new) it->second = CodePointsAsRegex(store_, FoldCase({{c.value, c.value}}), TextSpelling::kUtf8);
      parts.push_back(it->second);
    }
    return store_.Concat(parts);
  }

  RegexId Pattern(NodeId id) {
    try {
      return ParsePattern(store_, document_.nodes[id].text, PatternSyntax::kRust, PatternMatch::kWhole,
                          TextSpelling::kUtf8);
    } catch (const RequestError& error) {
      Fail(id, std::string("the pattern: ") + error.what() + ", which begins");
    }
  }

  RegexId Substring(const std::vector<std::string>& texts) {
    std::vector<RegexId> substrings = {RegexStore::kEmpty};
    RegexId from_here = RegexStore::kEmpty;  // the texts that begin at a chunk
    for (size_t i = texts.size(); i-- > 0;) {
      from_here = store_.Optional(store_.Concat(store_.Literal(texts[i]), from_here));
      substrings.push_back(from_here);
    }
    return store_.Or(std::move(substrings));
  }

  // A terminal in a rule, with the texts to ignore after it.
  GrammarTree::NodeId Lexeme(RegexId regex) { return tree_.AddRegex(store_.Concat(regex, skip_)); }
  GrammarTree::NodeId WithSkip(GrammarTree::NodeId node) {
    if (skip_ == RegexStore::kEmpty) return node;
    return tree_.AddSequence({node, tree_.AddRegex(skip_)});
  }

  GrammarTree::NodeId RulePart(NodeId id) {
    const Node& node = document_.nodes[id];
    switch (node.kind) {
      case Kind::kString:
      case Kind::kPattern:
      case Kind::kCodePoints:
      case Kind::kSubstring:
        return Lexeme(Terminal(id));
      case Kind::kName: {
        const uint32_t definition = DefinitionOf(id);
        if (IsLarkTerminal(node.text)) return Lexeme(*terminals_[definition].regex);
        return tree_.AddReference(rules_[definition]);
      }
      case Kind::kToken:
      case Kind::kTokenIds: {
        const NamedTokens tokens = Tokens(id);
        if (node.is_complement) {
          Fail(id, "must be repeated with * or +: single tokens are not told apart in text");
        }
        return WithSkip(AddOneOfTokens(builder_, tree_, tokens));
      }
      case Kind::kJson:
        return Json(id);
      case Kind::kAnd:
      case Kind::kNot:
        Fail(id, "& and ~ can only be used in terminals");
      case Kind::kRepeat:
        return Repeat(node);
      case Kind::kSequence:
      case Kind::kAlternatives:
        break;
    }
    std::vector<GrammarTree::NodeId> parts;
    for (const NodeId child : node.children) parts.push_back(RulePart(child));
    return node.kind == Kind::kSequence ? tree_.AddSequence(std::move(parts)) : tree_.AddAlternatives(std::move(parts));
  }

  GrammarTree::NodeId Repeat(const Node& node) {
    const Node& item = document_.nodes[node.children[0]];
    const bool is_complement = item.kind == Kind::kTokenIds && item.is_complement;
    if (is_complement && skip_ == RegexStore::kEmpty && node.min <= 1 && node.max == GrammarBuilder::kUnbounded) {
      return AddAnyTokens(builder_, tree_, vocabulary_, Tokens(node.children[0]), node.min);
    }
    return tree_.AddRepeat(RulePart(node.children[0]), node.min, node.max);
  }

  // Returns the tokens that a node names, before it is complemented.
  NamedTokens Tokens(NodeId id) {
    const Node& node = document_.nodes[id];
    try {
      if (node.kind == Kind::kToken) return TokensOfName(vocabulary_, node.text);
      NamedTokens tokens;
      for (const auto& [first, last] : node.ranges) tokens.Append(TokensOfRange(vocabulary_, {first, last}));
      return tokens;
    } catch (const UnknownTokenError& error) {
      Fail(id, error.what());
    }
  }

  GrammarTree::NodeId Json(NodeId id) {
    try {
      return WithSkip(tree_.AddSymbol(AddJsonSchema(builder_, document_.nodes[id].text, options_)));
    } catch (const RequestError& error) {
      Fail(id, std::string(error.what()) + " in %json");
    }
  }

  struct TerminalState {
    std::optional<RegexId> regex;
    bool is_open = false;  // being compiled
  };

  GrammarBuilder& builder_;
  RegexStore& store_;
  const GrammarVocabulary& vocabulary_;
  const JsonSchemaOptions& options_;
  TextCursor cursor_;  // for errors
  LarkDocument document_;
  GrammarTree tree_;
  std::vector<TerminalState> terminals_;  // by definition
  std::vector<uint32_t> rules_;           // by definition
  std::map<char32_t, RegexId> folded_;    // code points without case
  RegexId skip_ = RegexStore::kEmpty;
};

}  // namespace

SymbolId AddLark(GrammarBuilder& builder, std::string_view text, const GrammarVocabulary& vocabulary,
                 const JsonSchemaOptions& options) {
  return LarkCompiler(builder, text, vocabulary, options).Compile();
}

}  // namespace vllm
