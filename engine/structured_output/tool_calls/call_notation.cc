#include "engine/structured_output/tool_calls/call_notation.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/structured_output/dialects/free_text.h"
#include "engine/structured_output/dialects/grammar_tree.h"

namespace vllm {
namespace {

using NodeId = GrammarTree::NodeId;

constexpr std::string_view kTypeMark = "%TYPE%";
constexpr size_t kMaxKeyBytes = 128;
// Keys that no schema declares.
constexpr char kPlainKey[] = "[A-Za-z_][A-Za-z0-9_]{0,63}";
constexpr char kNumber[] = "-?(?:0|[1-9][0-9]{0,19})(?:\\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?";
constexpr char kSingleQuoted[] = "'(?:[^'\\\\\\x00-\\x1F]|\\\\[\\\\'\"nrt])*'";
constexpr char kDoubleQuoted[] = "\"(?:[^\"\\\\\\x00-\\x1F]|\\\\[\\\\'\"nrt])*\"";

bool IsIdentifierByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string_view Strip(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \n"), text.size());
  return text.substr(begin, text.find_last_not_of(" \n") + 1 - begin);
}

class CallNotation : public ArgumentNotation {
 public:
  CallNotation(GrammarBuilder& builder, SyntaxText& texts, const ToolCallFormat& format, const ToolSet& tools,
               std::string tool)
      : builder_(builder),
        store_(builder.regexes()),
        texts_(texts),
        format_(format),
        syntax_(format.syntax),
        tools_(tools),
        tool_(std::move(tool)) {}

  SymbolId Empty() override { return builder_.AddTerminal(RegexStore::kEmpty); }
  SymbolId Close() override { return builder_.AddTerminal(RegexStore::kEmpty); }

 protected:
  // Returns the texts of the key, of those that may be written if it is not declared.
  RegexId KeyOf(const JsonArgument& argument, bool is_valid) {
    if (argument.name.empty()) return store_.And({argument.key, Pattern(kPlainKey)});
    if (!is_valid || argument.name.size() > kMaxKeyBytes) {
      throw RequestError("the parameter " + Escape(argument.name, 64) + " cannot be written in the format " +
                         std::string(format_.name));
    }
    return argument.key;
  }
  RegexId Pattern(std::string_view pattern) { return texts_.Pattern(pattern); }
  RegexId Concat(const std::vector<RegexId>& parts) { return store_.Concat(parts); }
  RegexId Containing(std::string_view text) {
    return Concat({RegexStore::kEverything, store_.Literal(text), RegexStore::kEverything});
  }
  RegexId PythonWords(const JsonArgument& argument) {
    std::vector<RegexId> words;
    if (argument.any_null) words.push_back(store_.Literal("None"));
    if (argument.has_true) words.push_back(store_.Literal("True"));
    if (argument.has_false) words.push_back(store_.Literal("False"));
    return store_.Or(std::move(words));
  }
  // The types that the parser expects.
  JsonTypes TypesOf(const JsonArgument& argument) const { return tools_.ParameterTypes(tool_, argument.name); }
  SymbolId Symbol(GrammarTree& tree, NodeId node) { return AddGrammarTree(builder_, tree, node); }

  // The notation of values of any type.
  struct AnyValue {
    RegexId comma = RegexStore::kNothing;  // between elements and between members
    RegexId key = RegexStore::kNothing;    // up to the value
    std::vector<SymbolId> scalars = {};
  };
  // Notations that write lists and objects in their own way override it.
  virtual AnyValue AnyValueParts() { return {}; }
  SymbolId AnyList() {
    AddAnyValue();
    return *any_list_;
  }
  SymbolId AnyObject() {
    AddAnyValue();
    return *any_object_;
  }

  GrammarBuilder& builder_;
  RegexStore& store_;
  SyntaxText& texts_;
  const ToolCallFormat& format_;
  const CallSyntax& syntax_;
  const ToolSet& tools_;
  const std::string tool_;

 private:
  void AddAnyValue() {
    if (any_list_) return;
    const AnyValue parts = AnyValueParts();
    const SymbolId value = builder_.AddRule();
    GrammarTree tree;
    const NodeId element = tree.AddSymbol(value);
    any_list_ = Symbol(tree, List(tree, '[', element, parts.comma, ']'));
    any_object_ =
        Symbol(tree, List(tree, '{', tree.AddSequence({tree.AddRegex(parts.key), element}), parts.comma, '}'));
    for (const SymbolId scalar : parts.scalars) builder_.AddAlternative(value, {scalar});
    builder_.AddAlternative(value, {*any_list_});
    builder_.AddAlternative(value, {*any_object_});
  }
  NodeId List(GrammarTree& tree, char open, NodeId element, RegexId comma, char close) {
    const auto literal = [&](char c) { return tree.AddRegex(store_.Literal(std::string_view(&c, 1))); };
    const NodeId more =
        tree.AddRepeat(tree.AddSequence({tree.AddRegex(comma), element}), 0, GrammarBuilder::kUnbounded);
    return tree.AddSequence({literal(open), tree.AddRepeat(tree.AddSequence({element, more}), 0, 1), literal(close)});
  }

  std::optional<SymbolId> any_list_, any_object_;
};

class TaggedNotation : public CallNotation {
 public:
  using CallNotation::CallNotation;

  std::string_view EndText() const override { return Strip(syntax_.parameter_end); }
  Member Write(const JsonArgument& argument) override {
    const std::string_view name = argument.name;
    const bool is_valid = name.find_first_of("<>\"\r\n\t") == name.npos && name.size() == Strip(name).size();
    GrammarTree tree;
    const SymbolId key = Symbol(
        tree, tree.AddSequence({texts_.Add(tree, syntax_.parameter_begin), tree.AddRegex(KeyOf(argument, is_valid))}));
    GrammarTree value_tree;
    return {key, key, Symbol(value_tree, Value(value_tree, argument))};
  }

 private:
  NodeId Value(GrammarTree& tree, const JsonArgument& argument) {
    if (syntax_.key_end.find(kTypeMark) != std::string_view::npos) {
      return tree.AddAlternatives({Tagged(tree, "true", tree.AddRegex(Raw(argument.strings))),
                                   Tagged(tree, "false", tree.AddSymbol(argument.json_without_strings()))});
    }
    const JsonTypes types = TypesOf(argument);
    if ((types & ~kJsonNull) == kJsonString) return Tagged(tree, "", tree.AddRegex(StringOrNull(argument, types)));
    std::vector<NodeId> ways;
    if (MayBeRaw(argument, types)) ways.push_back(tree.AddRegex(Raw(RawStrings(argument))));
    // Templates write these as Python does. The parser would take them for strings if strings were allowed.
    if ((types & kJsonString) == 0) ways.push_back(tree.AddRegex(PythonWords(argument)));
    ways.push_back(tree.AddSymbol(argument.json()));
    return Tagged(tree, "", tree.AddAlternatives(std::move(ways)));
  }

  // The parser does not remove quotation marks. It takes the text null for null if that is one of the types.
  RegexId StringOrNull(const JsonArgument& argument, JsonTypes types) {
    const RegexId strings = Raw(argument.strings);
    if ((types & kJsonNull) == 0) return strings;
    const RegexId null = store_.Literal("null");
    return argument.any_null ? store_.Or({strings, null}) : store_.And({strings, store_.Not(null)});
  }
  // Text that the parser takes for a value of another type must be a value that is allowed.
  static bool MayBeRaw(const JsonArgument& argument, JsonTypes types) {
    JsonTypes any = kJsonString;
    if (argument.any_null) any |= kJsonNull;
    if (argument.any_boolean) any |= kJsonBoolean;
    if (argument.any_integer) any |= kJsonInteger;
    if (argument.any_number) any |= kJsonNumber;
    if (argument.any_array) any |= kJsonArray;
    if (argument.any_object) any |= kJsonObject;
    return (types & kJsonString) != 0 && (types & ~any) == 0;
  }
  // The parser removes quotation marks if the value may have other types.
  RegexId RawStrings(const JsonArgument& argument) {
    if (argument.any_string) return argument.strings;
    return store_.And({argument.strings, Pattern("(?s:[^ \\t\\r\\n\"'].*)?")});
  }
  RegexId Raw(RegexId strings) { return store_.And({strings, store_.Not(Containing(EndText()))}); }
  NodeId Tagged(GrammarTree& tree, std::string_view type, NodeId value) {
    std::string key_end(syntax_.key_end);
    if (!type.empty()) key_end.replace(key_end.find(kTypeMark), kTypeMark.size(), type);
    return tree.AddSequence({texts_.Add(tree, key_end), texts_.Add(tree, syntax_.value_begin), value,
                             texts_.Add(tree, syntax_.parameter_end)});
  }
};

class PythonicNotation : public CallNotation {
 public:
  using CallNotation::CallNotation;

  Member Write(const JsonArgument& argument) override {
    const RegexId key = KeyOf(argument, std::ranges::all_of(argument.name, IsIdentifierByte));
    const RegexId comma = store_.Concat(store_.Literal(","), store_.Optional(store_.Literal(" ")));
    const RegexId text = store_.Concat(key, store_.Literal("="));
    return {builder_.AddTerminal(text), builder_.AddTerminal(store_.Concat(comma, text)), Value(argument)};
  }

 private:
  SymbolId Value(const JsonArgument& argument) {
    GrammarTree tree;
    std::vector<RegexId> words = {PythonWords(argument)};
    if (argument.any_string) {
      words.push_back(Pattern(kSingleQuoted));
    } else {
      const RegexId without_quote = store_.And({argument.json_strings, store_.Not(Containing("'"))});
      words.push_back(Concat({store_.Literal("'"), without_quote, store_.Literal("'")}));
    }
    std::vector<NodeId> ways = {tree.AddRegex(store_.Or(std::move(words))), tree.AddSymbol(argument.json())};
    if (argument.any_array) ways.push_back(tree.AddSymbol(AnyList()));
    if (argument.any_object) ways.push_back(tree.AddSymbol(AnyObject()));
    return Symbol(tree, tree.AddAlternatives(std::move(ways)));
  }

  AnyValue AnyValueParts() override {
    const RegexId space = store_.Optional(store_.Literal(" "));
    const RegexId string = store_.Or({Pattern(kSingleQuoted), Pattern(kDoubleQuoted)});
    const RegexId scalar = store_.Or({string, Pattern(kNumber), store_.Literals({"None", "True", "False"})});
    return {store_.Concat(store_.Literal(","), space),
            Concat({string, store_.Literal(":"), space}),
            {builder_.AddTerminal(scalar)}};
  }
};

class GemmaNotation : public CallNotation {
 public:
  using CallNotation::CallNotation;

  SymbolId Empty() override { return builder_.AddTerminal(store_.Literal("{}")); }
  SymbolId Close() override { return builder_.AddTerminal(store_.Literal("}")); }

  Member Write(const JsonArgument& argument) override {
    const std::string_view name = argument.name;
    const bool is_valid = name.find_first_of(":{}\",\r\n\t") == name.npos && name.size() == Strip(name).size() &&
                          name.find(syntax_.string_mark) == name.npos;
    const RegexId key = store_.Concat(KeyOf(argument, is_valid), store_.Literal(":"));
    GrammarTree tree;
    std::vector<NodeId> ways;
    const JsonTypes types = TypesOf(argument);
    if ((types & kJsonString) != 0) ways.push_back(Marked(tree, argument.strings));
    if (types != kJsonString) {
      const NodeId value = tree.AddSymbol(argument.json_without_strings());
      ways.push_back(value);
      // FunctionGemma puts marks around numbers too.
      if ((types & (kJsonString | kJsonArray | kJsonObject)) == 0) {
        const NodeId mark = texts_.Add(tree, syntax_.string_mark);
        ways.push_back(tree.AddSequence({mark, value, mark}));
      }
    }
    if (argument.any_array) ways.push_back(tree.AddSymbol(AnyList()));
    if (argument.any_object) ways.push_back(tree.AddSymbol(AnyObject()));
    return {builder_.AddTerminal(store_.Concat(store_.Literal("{"), key)),
            builder_.AddTerminal(store_.Concat(store_.Literal(","), key)),
            Symbol(tree, tree.AddAlternatives(std::move(ways)))};
  }

 private:
  // A string between marks.
  NodeId Marked(GrammarTree& tree, RegexId strings) {
    const NodeId mark = texts_.Add(tree, syntax_.string_mark);
    const RegexId text = store_.And({strings, store_.Not(Containing(syntax_.string_mark))});
    return tree.AddSequence({mark, tree.AddRegex(text), mark});
  }
  AnyValue AnyValueParts() override {
    GrammarTree tree;
    const SymbolId string = Symbol(tree, Marked(tree, TextWithout(store_, {})));
    const RegexId scalar = store_.Or({Pattern(kNumber), store_.Literals({"null", "true", "false"})});
    return {store_.Literal(","),
            store_.Concat(Pattern(kPlainKey), store_.Literal(":")),
            {builder_.AddTerminal(scalar), string}};
  }
};

}  // namespace

std::unique_ptr<ArgumentNotation> MakeCallNotation(GrammarBuilder& builder, SyntaxText& texts,
                                                   const ToolCallFormat& format, const ToolSet& tools,
                                                   const std::string& tool) {
  switch (format.syntax.style) {
    case ArgumentStyle::kPythonic:
      return std::make_unique<PythonicNotation>(builder, texts, format, tools, tool);
    case ArgumentStyle::kGemma:
      return std::make_unique<GemmaNotation>(builder, texts, format, tools, tool);
    default:
      return std::make_unique<TaggedNotation>(builder, texts, format, tools, tool);
  }
}

bool CanWriteName(const ToolCallFormat& format, std::string_view name) {
  return format.syntax.style != ArgumentStyle::kPythonic || name.find_first_of("/:") == std::string_view::npos;
}

}  // namespace vllm
