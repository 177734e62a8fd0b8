#include "engine/structured_output/tool_calls/call_grammar.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/config/errors.h"
#include "engine/structured_output/dialects/free_text.h"
#include "engine/structured_output/dialects/grammar_tree.h"
#include "engine/structured_output/json_schema/argument_notation.h"
#include "engine/structured_output/tool_calls/call_notation.h"
#include "engine/structured_output/tool_calls/syntax_text.h"
#include "engine/tool_calls/syntax/tool_set.h"

namespace vllm {
namespace {

using Json = nlohmann::ordered_json;
using NodeId = GrammarTree::NodeId;

// Models begin an answer after a thought with two line breaks.
constexpr uint32_t kMaxLinesBefore = 2;

// Returns true if the schema declares all parameters by name in `properties`. By JSON Schema, an object may then have
// other members too, but a tool knows nothing of them, and small models copy the keywords of the schema into them.
// llama.cpp and xgrammar do not allow them either.
bool DeclaresAllParameters(const Json& schema) {
  const auto properties = schema.find("properties");
  if (properties == schema.end() || !properties->is_object()) return false;
  for (const char* keyword :
       {"additionalProperties", "unevaluatedProperties", "patternProperties", "minProperties", "$ref", "$dynamicRef",
        "allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "dependencies", "extends"}) {
    if (schema.contains(keyword)) return false;
  }
  const Json required = schema.value("required", Json::array());
  return required.is_array() && std::ranges::all_of(required, [&](const Json& name) {
           return name.is_string() && properties->contains(name.get<std::string>());
         });
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
  if (DeclaresAllParameters(schema)) schema["additionalProperties"] = false;
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
        texts_(builder, vocabulary, format_),
        tools_(constraint.tools),
        options_(options),
        warnings_(warnings) {}

  SymbolId Add() {
    for (const ToolDefinition& tool : constraint_.tools) {
      if (CanWrite(tool)) tools_to_call_.push_back({&tool, ArgumentsOf(tool)});
    }
    if (IsHarmony(&format_)) return AddGrammarTree(builder_, tree_, HarmonyMessages());
    if (tools_to_call_.empty()) return builder_.AddTerminal(PlainText());
    return AddGrammarTree(builder_, tree_, constraint_.must_call ? OnlyCalls() : TextWithCalls());
  }

 private:
  NodeId Optional(NodeId node) { return tree_.AddRepeat(node, 0, 1); }
  NodeId Many(NodeId node) { return tree_.AddRepeat(node, 0, GrammarBuilder::kUnbounded); }
  NodeId Literal(std::string_view text) { return tree_.AddRegex(store_.Literal(text)); }

  bool CanWrite(const ToolDefinition& tool) {
    if (CanWriteName(format_, tool.name)) return true;
    const std::string why =
        "tool " + tool.name + ": its name cannot be written in the format " + std::string(format_.name);
    if (constraint_.must_call || tool.strict) throw RequestError(why);
    if (warnings_ != nullptr) warnings_->push_back(why);
    return false;
  }

  SymbolId ArgumentsOf(const ToolDefinition& tool) {
    try {
      return Arguments(tool.name, ArgumentsSchema(tool), warnings_);
    } catch (const std::runtime_error& error) {
      if (constraint_.must_call || tool.strict) throw RequestError("tool " + tool.name + ": " + error.what());
      if (warnings_ != nullptr) {
        warnings_->push_back("tool " + tool.name + ": its calls may have any arguments: " + error.what());
      }
      return Arguments(tool.name, kAnyJsonObject, nullptr);
    }
  }
  SymbolId Arguments(const std::string& tool, const std::string& schema, std::vector<std::string>* warnings) {
    if (syntax_.style == ArgumentStyle::kJson) return AddJsonSchema(builder_, schema, options_, warnings);
    const std::unique_ptr<ArgumentNotation> notation = MakeCallNotation(builder_, texts_, format_, tools_, tool);
    return AddJsonArguments(builder_, schema, options_, *notation, warnings);
  }

  NodeId Marks(std::string_view text) { return texts_.Add(tree_, text); }

  // A call without CallSyntax::begin and end.
  NodeId CallBody() {
    if (body_) return tree_.AddReference(*body_);
    const NodeId after_name = tree_.AddSequence({Marks(syntax_.name_suffix), Marks(syntax_.arguments_begin)});
    std::vector<NodeId> calls;
    for (const auto& [tool, arguments] : tools_to_call_) {
      calls.push_back(tree_.AddSequence({Literal(tool->name), after_name, tree_.AddSymbol(arguments)}));
    }
    std::vector<NodeId> parts = {Marks(syntax_.name_prefix), tree_.AddAlternatives(std::move(calls))};
    if (format_.call_ids == ToolCallFormat::CallIds::kNineCharacters && syntax_.name_prefix.starts_with('{')) {
      const RegexId id = texts_.Pattern(R"([a-zA-Z0-9]{9}")");
      parts.push_back(
          Optional(tree_.AddRegex(store_.Concat(store_.Concat(texts_.Bytes(", \"id\": "), store_.Literal("\"")), id))));
    }
    parts.push_back(Marks(syntax_.arguments_end));
    body_ = tree_.AddRule();
    tree_.SetRule(*body_, tree_.AddSequence(std::move(parts)));
    return tree_.AddReference(*body_);
  }
  NodeId Calls(NodeId call) {
    if (!constraint_.parallel_calls) return call;
    // If text may follow each call and a marker begins the next one, that call is another section. With a second way to
    // repeat calls, the number of readings would grow with each of them.
    if (!constraint_.must_call && !syntax_.begin.empty()) return call;
    NodeId separator = Marks(syntax_.separator);
    if (syntax_.separator == "\n") separator = Optional(separator);
    return tree_.AddSequence({call, Many(tree_.AddSequence({separator, call}))});
  }
  NodeId WholeCalls() { return Calls(tree_.AddSequence({Marks(syntax_.begin), CallBody(), Marks(syntax_.end)})); }
  NodeId Section() {
    NodeId end = Marks(syntax_.section_end);
    // Templates of these models leave it out.
    if (format_.reader == ToolCallFormat::Reader::kNamedJson && !syntax_.begin.empty()) end = Optional(end);
    return tree_.AddSequence({Marks(syntax_.section_begin), WholeCalls(), end});
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
    for (const std::string_view end : ListedTexts(format_.more_ends)) ends.push_back(Marks(end));
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
    for (const std::string_view trigger : ListedTexts(format_.more_triggers)) triggers.emplace_back(trigger);
    if (!format_.is_bare) triggers.emplace_back(syntax_.trigger);
    const RegexId text = TextWithout(store_, triggers);
    if (!format_.is_bare) return text;
    std::vector<std::string> names;
    for (const auto& [tool, arguments] : tools_to_call_) names.push_back(tool->name);
    RegexId before = RegexStore::kEverything;
    RegexId begin = texts_.Bytes(syntax_.name_prefix);
    if (syntax_.trigger != "{") {
      // At the beginning of a line.
      const RegexId space = store_.Star(OneOf(" \t\r\n"));
      before = store_.Concat(store_.Optional(store_.Concat(RegexStore::kEverything, store_.Literal("\n"))), space);
      begin = store_.Concat(store_.Literal(syntax_.section_begin), space);
    }
    const std::vector<RegexId> call = {before, begin, store_.Literals(std::move(names)),
                                       texts_.Bytes(syntax_.name_suffix), RegexStore::kEverything};
    return store_.And({text, store_.Not(store_.Concat(call))});
  }
  RegexId OneOf(std::string_view bytes) {
    ByteSet set;
    for (const char c : bytes) set.Add(static_cast<uint8_t>(c));
    return store_.Bytes(set);
  }

  // The parser reads another call after a call without an end.
  RegexId PlainTextAfterCalls(RegexId text) {
    if (!syntax_.end.empty() || !syntax_.section_end.empty()) return text;
    const std::vector<RegexId> call = {store_.Star(OneOf(" \t\r\n")), OneOf("{;"), RegexStore::kEverything};
    return store_.And({text, store_.Not(store_.Concat(call))});
  }

  NodeId TextWithCalls() {
    const RegexId text = PlainText();
    const NodeId after = tree_.AddRegex(PlainTextAfterCalls(text));
    std::vector<NodeId> sections = {Section()};
    for (const std::string_view trigger : ListedTexts(format_.more_triggers)) sections.push_back(OtherSection(trigger));
    const NodeId section = tree_.AddAlternatives(std::move(sections));
    const NodeId rest = constraint_.parallel_calls ? Many(tree_.AddSequence({section, after})) : Optional(section);
    return tree_.AddSequence({tree_.AddRegex(text), rest});
  }

  // A message of harmony that is a call. Models name the recipient before or after the channel, and may leave out the
  // type of the content.
  NodeId HarmonyCall() {
    const NodeId constrain = tree_.AddSequence({Optional(Literal(" ")), Marks("<|constrain|>"), Literal("json")});
    const NodeId type = Optional(tree_.AddAlternatives({Literal(" json"), constrain}));
    const NodeId content = tree_.AddSequence({type, Marks("<|message|>")});
    const NodeId channel_and_content = tree_.AddSequence({Marks("<|channel|>commentary"), content});
    std::vector<NodeId> after_channel, before_channel;
    for (const auto& [tool, arguments] : tools_to_call_) {
      const NodeId name = Literal(tool->name);
      const NodeId value = tree_.AddSymbol(arguments);
      after_channel.push_back(tree_.AddSequence({name, content, value}));
      before_channel.push_back(tree_.AddSequence({name, channel_and_content, value}));
    }
    const NodeId call = tree_.AddAlternatives(
        {tree_.AddSequence({Marks(syntax_.begin), tree_.AddAlternatives(std::move(after_channel))}),
         tree_.AddSequence({Literal(" to=functions."), tree_.AddAlternatives(std::move(before_channel))})});
    // The end is a stop token for most of these models, and then it is not part of the output.
    return tree_.AddSequence({call, Optional(Marks(syntax_.end))});
  }

  // The thoughts and texts of harmony are messages too. A call ends the output.
  NodeId HarmonyMessages() {
    const NodeId text = tree_.AddRegex(PlainText());
    const auto message = [&](const std::string& channel) {
      return tree_.AddSequence({Marks("<|channel|>" + channel + "<|message|>"), text});
    };
    const NodeId thought = message("analysis");
    const NodeId next = Marks("<|end|><|start|>assistant");
    if (constraint_.must_call) return tree_.AddSequence({Many(tree_.AddSequence({thought, next})), HarmonyCall()});
    const std::vector<NodeId> texts = {message("final"), message("commentary")};
    std::vector<NodeId> last = texts;
    if (!tools_to_call_.empty()) last.push_back(HarmonyCall());
    const NodeId before = tree_.AddAlternatives({thought, texts[0], texts[1]});
    return Optional(
        tree_.AddSequence({Many(tree_.AddSequence({before, next})), tree_.AddAlternatives(std::move(last))}));
  }

  GrammarBuilder& builder_;
  RegexStore& store_;
  const ToolCallConstraint& constraint_;
  const ToolCallFormat& format_;
  const CallSyntax& syntax_;
  SyntaxText texts_;
  const ToolSet tools_;
  const JsonSchemaOptions& options_;
  std::vector<std::string>* warnings_;
  GrammarTree tree_;
  std::vector<std::pair<const ToolDefinition*, SymbolId>> tools_to_call_;  // with their arguments
  std::optional<uint32_t> body_;                                           // the rule of CallBody
};

}  // namespace

SymbolId AddToolCalls(GrammarBuilder& builder, const ToolCallConstraint& constraint,
                      const GrammarVocabulary& vocabulary, const JsonSchemaOptions& options,
                      std::vector<std::string>* warnings) {
  return CallGrammar(builder, constraint, vocabulary, options, warnings).Add();
}

}  // namespace vllm
