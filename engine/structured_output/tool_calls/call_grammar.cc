#include "engine/structured_output/tool_calls/call_grammar.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/structured_output/dialects/free_text.h"
#include "engine/structured_output/dialects/grammar_tree.h"
#include "engine/structured_output/regex/code_point_set.h"

namespace vllm {
namespace {

using Json = nlohmann::ordered_json;
using NodeId = GrammarTree::NodeId;

constexpr std::string_view kIndexMark = "%INDEX%";
constexpr uint32_t kMaxIndent = 64;
// Models begin an answer after a thought with two line breaks.
constexpr uint32_t kMaxLinesBefore = 2;

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

// Returns the schema of a tool's arguments, which are an object even if the schema does not say so.
std::string ArgumentsSchema(const ToolDefinition& tool) {
  Json schema = Json::parse(tool.parameters);
  if (const auto type = schema.find("type"); type != schema.end()) {
    const bool allows_object =
        *type == "object" || (type->is_array() && std::ranges::find(*type, "object") != type->end());
    if (!allows_object) throw RequestError("JSON schema: #/type: the arguments of a tool are an object");
  }
  schema["type"] = "object";
  return schema.dump();
}

class CallGrammar {
 public:
  CallGrammar(GrammarBuilder& builder, const ToolCallConstraint& constraint, const GrammarVocabulary& vocabulary,
              const JsonSchemaOptions& options, std::vector<std::string>* warnings)
      : builder_(builder),
        store_(builder.regexes()),
        constraint_(constraint),
        format_(*constraint.format),
        syntax_(constraint.format->syntax),
        vocabulary_(vocabulary),
        options_(options),
        warnings_(warnings) {}

  SymbolId Add() {
    const RegexId indent = store_.Repeat(store_.Or({store_.Literal(" "), store_.Literal("\t")}), 0, kMaxIndent);
    space_ = store_.Optional(store_.Or({store_.Literal(" "), store_.Concat(store_.Literal("\n"), indent)}));
    for (const ToolDefinition& tool : constraint_.tools) arguments_.push_back(ArgumentsOf(tool));
    return AddGrammarTree(builder_, tree_, constraint_.must_call ? OnlyCalls() : TextWithCalls());
  }

 private:
  NodeId Optional(NodeId node) { return tree_.AddRepeat(node, 0, 1); }
  NodeId Many(NodeId node) { return tree_.AddRepeat(node, 0, GrammarBuilder::kUnbounded); }
  NodeId Literal(std::string_view text) { return tree_.AddRegex(store_.Literal(text)); }

  SymbolId ArgumentsOf(const ToolDefinition& tool) {
    try {
      return AddJsonSchema(builder_, ArgumentsSchema(tool), options_, warnings_);
    } catch (const std::runtime_error& error) {
      if (constraint_.must_call || tool.strict) throw RequestError("tool " + tool.name + ": " + error.what());
      if (warnings_ != nullptr) {
        warnings_->push_back("tool " + tool.name + ": its calls may have any arguments: " + error.what());
      }
      return AddJsonSchema(builder_, kAnyJsonObject, options_);
    }
  }

  // Returns the id of the special token whose text is the longest beginning of `text`, and its length.
  std::optional<std::pair<int32_t, size_t>> SpecialTokenAt(std::string_view text) const {
    if (vocabulary_.find == nullptr || vocabulary_.bytes == nullptr) return std::nullopt;
    for (size_t size = text.size(); size > 0; --size) {
      const std::optional<int32_t> id = vocabulary_.find(text.substr(0, size));
      if (id && vocabulary_.bytes(*id) == "") return std::pair(*id, size);
    }
    return std::nullopt;
  }

  // A text of the syntax, in which special tokens are themselves.
  NodeId Marks(std::string_view text) {
    std::vector<NodeId> parts;
    size_t begin = 0;  // of the bytes before the next special token
    const auto add_bytes = [&](size_t end) {
      if (end > begin) parts.push_back(Bytes(text.substr(begin, end - begin)));
    };
    for (size_t i = 0; i < text.size();) {
      const std::optional<std::pair<int32_t, size_t>> token = SpecialTokenAt(text.substr(i));
      if (!token) {
        ++i;
        continue;
      }
      add_bytes(i);
      parts.push_back(tree_.AddSymbol(builder_.AddTokens({{token->first, token->first}})));
      i += token->second;
      begin = i;
    }
    add_bytes(text.size());
    return tree_.AddSequence(std::move(parts));
  }

  NodeId Bytes(std::string_view text) {
    const size_t mark = text.find(kIndexMark);
    if (mark == std::string_view::npos) return tree_.AddRegex(LooseText(text));
    // The parser does not compare the index with the number of calls.
    const RegexId digit = store_.Bytes(ByteSet::Range('0', '9'));
    return tree_.AddSequence({tree_.AddRegex(LooseText(text.substr(0, mark))),
                              tree_.AddRegex(store_.Repeat(digit, 1, 4)),
                              tree_.AddRegex(LooseText(text.substr(mark + kIndexMark.size())))});
  }

  // A text of the syntax without special tokens. Between tokens of JSON may be other spaces than in the syntax.
  RegexId LooseText(std::string_view text) {
    if (format_.reader != ToolCallFormat::Reader::kJsonCalls) return store_.Literal(text);
    std::vector<RegexId> parts;
    bool may_have_space = false;
    for (const char c : text) {
      may_have_space = may_have_space || c == ' ' || c == '\n' || c == '}';
      if (c == ' ' || c == '\n') continue;
      if (may_have_space) parts.push_back(space_);
      parts.push_back(store_.Literal(std::string_view(&c, 1)));
      may_have_space = c == '{' || c == ':' || c == ',';
    }
    if (may_have_space) parts.push_back(space_);
    return store_.Concat(parts);
  }

  // A call without CallSyntax::begin and end.
  NodeId CallBody() {
    if (body_) return tree_.AddReference(*body_);
    const NodeId after_name = tree_.AddSequence({Marks(syntax_.name_suffix), Marks(syntax_.arguments_begin)});
    std::vector<NodeId> calls;
    for (size_t i = 0; i < constraint_.tools.size(); ++i) {
      calls.push_back(
          tree_.AddSequence({Literal(constraint_.tools[i].name), after_name, tree_.AddSymbol(arguments_[i])}));
    }
    body_ = tree_.AddRule();
    tree_.SetRule(*body_, tree_.AddSequence({Marks(syntax_.name_prefix), tree_.AddAlternatives(std::move(calls)),
                                             Marks(syntax_.arguments_end)}));
    return tree_.AddReference(*body_);
  }
  NodeId Calls(NodeId call) {
    if (!constraint_.parallel_calls) return call;
    return tree_.AddSequence({call, Many(tree_.AddSequence({Marks(syntax_.separator), call}))});
  }
  NodeId WholeCalls() { return Calls(tree_.AddSequence({Marks(syntax_.begin), CallBody(), Marks(syntax_.end)})); }
  NodeId Section() {
    return tree_.AddSequence({Marks(syntax_.section_begin), WholeCalls(), Marks(syntax_.section_end)});
  }

  // A section that begins with one of more_triggers.
  NodeId OtherSection(std::string_view trigger) {
    if (!syntax_.begin.empty() && syntax_.begin.starts_with(trigger)) {
      return tree_.AddSequence({WholeCalls(), Optional(Marks(syntax_.section_end))});
    }
    if (!syntax_.name_prefix.empty() && syntax_.name_prefix.starts_with(trigger)) {
      return tree_.AddSequence({CallBody(), Optional(Marks(syntax_.end))});
    }
    const bool is_array = syntax_.section_begin.ends_with('[');
    std::vector<NodeId> ends;
    for (const std::string_view end : LinesOf(format_.more_ends)) ends.push_back(Marks(end));
    std::vector<NodeId> parts = {Marks(trigger), Literal(is_array ? "[" : ""), Calls(CallBody()),
                                 Literal(is_array ? "]" : "")};
    if (!ends.empty()) parts.push_back(Optional(tree_.AddAlternatives(std::move(ends))));
    return tree_.AddSequence(std::move(parts));
  }

  NodeId OnlyCalls() {
    return tree_.AddSequence({tree_.AddRegex(store_.Repeat(store_.Literal("\n"), 0, kMaxLinesBefore)), Section()});
  }

  // Text in which the parser finds no call.
  RegexId PlainText() {
    std::vector<std::string> triggers;
    for (const std::string_view trigger : LinesOf(format_.more_triggers)) triggers.emplace_back(trigger);
    if (!format_.is_bare) triggers.emplace_back(syntax_.trigger);
    const RegexId text = TextWithout(store_, triggers);
    if (!format_.is_bare) return text;
    std::vector<std::string> names;
    for (const ToolDefinition& tool : constraint_.tools) names.push_back(tool.name);
    const RegexId begin = LooseText(syntax_.name_prefix);
    const std::vector<RegexId> call = {RegexStore::kEverything, begin, store_.Literals(std::move(names)),
                                       LooseText(syntax_.name_suffix), RegexStore::kEverything};
    return store_.And({text, store_.Not(store_.Concat(call))});
  }

  // The parser reads another call after a call without an end.
  RegexId PlainTextAfterCalls(RegexId text) {
    if (!syntax_.end.empty() || !syntax_.section_end.empty()) return text;
    const auto one_of = [&](std::string_view bytes) {
      std::vector<std::string> texts;
      for (const char c : bytes) texts.emplace_back(1, c);
      return store_.Literals(std::move(texts));
    };
    const std::vector<RegexId> call = {store_.Star(one_of(" \t\r\n")), one_of("{;"), RegexStore::kEverything};
    return store_.And({text, store_.Not(store_.Concat(call))});
  }

  NodeId TextWithCalls() {
    const RegexId text = PlainText();
    const NodeId after = tree_.AddRegex(PlainTextAfterCalls(text));
    std::vector<NodeId> sections = {Section()};
    for (const std::string_view trigger : LinesOf(format_.more_triggers)) sections.push_back(OtherSection(trigger));
    const NodeId section = tree_.AddAlternatives(std::move(sections));
    const NodeId rest = constraint_.parallel_calls ? Many(tree_.AddSequence({section, after})) : Optional(section);
    return tree_.AddSequence({tree_.AddRegex(text), rest});
  }

  GrammarBuilder& builder_;
  RegexStore& store_;
  const ToolCallConstraint& constraint_;
  const ToolCallFormat& format_;
  const CallSyntax& syntax_;
  const GrammarVocabulary& vocabulary_;
  const JsonSchemaOptions& options_;
  std::vector<std::string>* warnings_;
  GrammarTree tree_;
  RegexId space_ = RegexStore::kEmpty;
  std::vector<SymbolId> arguments_;  // of each tool
  std::optional<uint32_t> body_;     // the rule of CallBody
};

}  // namespace

SymbolId AddToolCalls(GrammarBuilder& builder, const ToolCallConstraint& constraint,
                      const GrammarVocabulary& vocabulary, const JsonSchemaOptions& options,
                      std::vector<std::string>* warnings) {
  return CallGrammar(builder, constraint, vocabulary, options, warnings).Add();
}

}  // namespace vllm
