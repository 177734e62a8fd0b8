// Tests the grammars of tool calls: for each format, outputs that a model writes are accepted, and everything that is
// accepted is read by ToolCallParser without an error.
#include "engine/structured_output/tool_calls/call_grammar.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/structured_output/compile_grammar.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "tests/structured_output/call_outputs.h"
#include "tests/structured_output/grammar_text.h"
#include "tests/tool_calls/call_text.h"

namespace vllm {
namespace {

using testing_support::CallsText;
using testing_support::Choice;
using testing_support::ConstraintOf;
using testing_support::GrammarText;
using testing_support::NamedCall;
using testing_support::OrderedJson;
using testing_support::Outputs;
using testing_support::StrictTools;
using testing_support::TestTools;
using testing_support::WeatherArguments;
using Position = GrammarAutomaton::Position;

// The formats in which text may surround calls; harmony_grammar_test.cc tests the other one.
std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const ToolCallFormat& format : ToolCallFormats()) {
    if (format.reader != ToolCallFormat::Reader::kHarmony) names.emplace_back(format.name);
  }
  return names;
}

class ToolCallGrammarTest : public ::testing::TestWithParam<std::string> {
 protected:
  const ToolCallFormat& format() const { return *FindToolCallFormat(GetParam()); }
  std::string Text(const std::vector<NamedCall>& calls) const { return CallsText(format().syntax, calls); }

  static std::vector<std::vector<NamedCall>> Calls() {
    const OrderedJson weather = WeatherArguments();
    const OrderedJson other = {{"note", "null and void"}, {"city", "two\nlines\n"}, {"unit", "celsius"}};
    return {{{"get_weather", weather}},
            {{"get_time", OrderedJson::object()}},
            {{"get_weather", other}},
            {{"get_weather", {{"tags", OrderedJson::array()}}}, {"add", {{"a", 1}, {"b", 2}}}},
            {{"send-mail.v2", {{"to", {"a", "b"}}, {"body", "東京 🗼"}}}, {"get_time", OrderedJson::object()}}};
  }
};

TEST_P(ToolCallGrammarTest, CallsThatModelsWriteAreAccepted) {
  Outputs required(ConstraintOf(GetParam(), Choice::kRequired));
  Outputs automatic(ConstraintOf(GetParam(), Choice::kAuto));
  for (const std::vector<NamedCall>& calls : Calls()) {
    const std::string text = Text(calls);
    EXPECT_TRUE(required.Accepts(text)) << text;
    EXPECT_TRUE(required.Accepts("\n\n" + text)) << text;
    EXPECT_TRUE(automatic.Accepts(text)) << text;
    EXPECT_TRUE(automatic.Accepts("Let me see [<{.\n" + text + "\nDone.")) << text;
  }
}

TEST_P(ToolCallGrammarTest, AnOutputWithoutACallIsAcceptedOnlyIfNoneIsRequired) {
  Outputs required(ConstraintOf(GetParam(), Choice::kRequired));
  Outputs automatic(ConstraintOf(GetParam(), Choice::kAuto));
  for (const std::string text : {"", "Hello", "{\"a\": [1]} <tool> [x] f(1)", "```json\n{\"name\": \"x\"}\n```"}) {
    EXPECT_FALSE(required.Accepts(text)) << text;
    EXPECT_TRUE(automatic.Accepts(text)) << text;
  }
}

TEST_P(ToolCallGrammarTest, WithoutParallelCallsTheOutputEndsAfterOneCall) {
  const std::string one = Text({{"add", {{"a", 1}}}});
  const std::string two = Text({{"add", {{"a", 1}}}, {"get_time", OrderedJson::object()}});
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    Outputs outputs(ConstraintOf(GetParam(), choice, /*parallel_calls=*/false));
    EXPECT_TRUE(outputs.Accepts(one));
    EXPECT_FALSE(outputs.Accepts(two)) << two;
    EXPECT_FALSE(outputs.Accepts(one + "x"));
  }
}

TEST_P(ToolCallGrammarTest, OtherNamesAndArgumentsAreRejected) {
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    ToolCallConstraint constraint = ConstraintOf(GetParam(), choice);
    constraint.tools = StrictTools();
    Outputs outputs(constraint);
    EXPECT_TRUE(outputs.Accepts(Text({{"get_weather", {{"city", "Oslo"}, {"days", 3}}}})));
    const std::vector<NamedCall> bad = {{"get_weather", {{"city", "Paris"}, {"days", 3}}},
                                        {"get_weather", {{"city", "Oslo"}, {"days", 15}}},
                                        {"get_weather", {{"city", "Oslo"}}},
                                        {"get_weather", {{"city", "Oslo"}, {"days", 3}, {"more", 1}}},
                                        {"get_weather", {{"city", "Oslo"}, {"days", 3}, {"hourly", "yes"}}},
                                        {"get_time", {{"x", 1}}},
                                        {"note", {{"text", "abcd abcd"}}},
                                        {"note", {{"text", "a"}, {"at", {{"y", 1}}}}}};
    for (const NamedCall& call : bad) EXPECT_FALSE(outputs.Accepts(Text({call}))) << Text({call});
    // Without a marker, a call of an unknown tool is text.
    if (format().is_bare && choice == Choice::kAuto) continue;
    EXPECT_FALSE(outputs.Accepts(Text({{"get_weathe", {{"city", "Oslo"}, {"days", 3}}}})));
    EXPECT_FALSE(outputs.Accepts(Text({{"get_time2", OrderedJson::object()}})));
  }
}

// By JSON Schema, `additionalProperties` is true by default.
TEST_P(ToolCallGrammarTest, UndeclaredArgumentsNeedAKeywordThatAllowsThem) {
  const auto accepts = [&](const std::string& keywords) {
    ToolCallConstraint constraint = ConstraintOf(GetParam(), Choice::kRequired);
    constraint.tools = ParseToolDefinitions(R"([{"name": "f", "parameters": {"type": "object")" + keywords + "}}]");
    return Outputs(constraint).Accepts(Text({{"f", {{"more", 1}}}}));
  };
  EXPECT_FALSE(accepts(R"(, "properties": {"a": {}})"));
  EXPECT_FALSE(accepts(R"(, "properties": {}, "required": [])"));
  EXPECT_TRUE(accepts(""));
  EXPECT_TRUE(accepts(R"(, "properties": {"a": {}}, "additionalProperties": true)"));
  EXPECT_TRUE(accepts(R"(, "properties": {"a": {}}, "patternProperties": {"^m": {}})"));
  EXPECT_TRUE(accepts(R"(, "properties": {"a": {}}, "required": ["more"])"));
  EXPECT_TRUE(accepts(R"(, "properties": {"a": {}}, "allOf": [{"properties": {"more": {}}}])"));
}

TEST_P(ToolCallGrammarTest, CutCallsAreRejected) {
  const std::string text = Text({{"get_weather", {{"city", "A"}, {"days", 3}}}});
  Outputs outputs(ConstraintOf(GetParam(), Choice::kRequired, /*parallel_calls=*/false));
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    // The end of a section may be missing.
    if (!outputs.Accepts(cut)) continue;
    const ToolCallOutput output = ParseToolCalls(format(), TestTools(), "request", cut);
    EXPECT_EQ(output.calls.size(), 1u) << cut;
    EXPECT_EQ(output.error + output.text, "") << cut;
  }
}

// Walks through the grammar at random, and returns a text that it accepts, or "" if that takes too long.
std::string RandomText(GrammarAutomaton& automaton, const std::vector<std::string>& tokens, std::mt19937& random) {
  Position position;
  std::string text;
  for (int i = 0; i < 400; ++i) {
    if (automaton.MayEnd(position) && random() % 8 == 0) return text;
    const TokenBitmask mask = automaton.AllowedTokens(position);
    std::vector<size_t> allowed;
    for (size_t id = 0; id < tokens.size(); ++id) {
      if ((mask[id / 32] >> (id % 32) & 1) != 0) allowed.push_back(id);
    }
    if (allowed.empty()) return automaton.MayEnd(position) ? text : "";
    const size_t id = allowed[random() % allowed.size()];
    if (!automaton.AdvanceToken(position, static_cast<int32_t>(id))) ADD_FAILURE() << "the mask allows " << tokens[id];
    text += tokens[id];
  }
  return "";
}

// The tokens of a vocabulary for random texts: bytes, pieces of the syntax, and pieces of arguments.
std::vector<std::string> RandomTokens(const CallSyntax& syntax) {
  std::vector<std::string> tokens;
  for (int byte = 1; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const std::string_view text :
       {syntax.trigger, syntax.section_begin, syntax.section_end, syntax.begin, syntax.end, syntax.name_prefix,
        syntax.name_suffix, syntax.arguments_begin, syntax.arguments_end, syntax.separator, syntax.parameter_begin,
        syntax.key_end, syntax.value_begin, syntax.parameter_end, syntax.string_mark}) {
    if (!text.empty()) tokens.emplace_back(text);
  }
  std::string start(syntax.trigger);
  if (start == "{") start = "{\"name\": \"note\"";
  if (start == "[") start = "\n[note(";
  if (start.starts_with("<|channel|>")) {
    for (const char* text : {"<|end|><|start|>assistant", "<|channel|>final<|message|>", " to=functions.get_time",
                             "<|channel|>commentary", "<|message|>", "<|channel|>analysis<|message|>"}) {
      tokens.insert(tokens.end(), 8, text);
    }
  }
  tokens.insert(tokens.end(), 8, start);
  for (const char* text :
       {"get_weather", "get_time",      "note",   "city", "days", "hourly", "tags", "unit",   "text", "to", "at",
        "Oslo",        "true",          "null",   "None", "\"",   "\":",    "\": ", "\", \"", "}",    "]",  "é",
        "\\n",         "{\"name\": \"", "[note(", "a:b",  "</",   "<",      ">",    "\n",     "=",    "('", "')"}) {
    tokens.emplace_back(text);
  }
  return tokens;
}

// Reads an output whose value is a list of `depth` lists.
bool AcceptsDepth(Outputs& outputs, const std::string& text, size_t depth, std::string& nested) {
  nested = testing_support::ReplaceAll(text, "[]", std::string(depth, '[') + std::string(depth, ']'));
  try {
    return outputs.Accepts(nested);
  } catch (const GrammarLimitError&) {
    return false;
  }
}

TEST_P(ToolCallGrammarTest, TheParserReadsEveryDepthThatIsAccepted) {
  const std::string text = Text({{"get_weather", {{"tags", OrderedJson::array()}}}});
  for (const size_t depth : {1u, 100u, 200u, 300u, 509u, 510u, 511u, 512u, 513u, 600u, 1023u}) {
    Outputs outputs(ConstraintOf(GetParam(), Choice::kRequired));
    std::string nested;
    const bool is_accepted = AcceptsDepth(outputs, text, depth, nested);
    EXPECT_TRUE(is_accepted || depth > 200) << depth;
    EXPECT_FALSE(is_accepted && depth == 1023);
    if (!is_accepted) continue;
    const ToolCallOutput output = ParseToolCalls(format(), TestTools(), "request", nested);
    EXPECT_EQ(output.error, "") << depth;
    EXPECT_EQ(output.calls.size(), 1u) << depth;
  }
}

TEST_P(ToolCallGrammarTest, TheNumberOfCallsIsNotLimited) {
  const std::vector<NamedCall> calls(1500, {"add", {{"a", 1}}});
  const std::string text = Text(calls);
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    EXPECT_TRUE(Outputs(ConstraintOf(GetParam(), choice)).Accepts(text));
  }
  const ToolCallOutput output = ParseToolCalls(format(), TestTools(), "request", text);
  EXPECT_EQ(output.calls.size(), calls.size());
  EXPECT_EQ(output.error + output.text, "");
}

// The parser would end the value there.
TEST_P(ToolCallGrammarTest, TheEndOfAValueHasAnEscapeInsideJson) {
  if (format().syntax.parameter_end.empty()) return;
  const std::string end(format().syntax.parameter_end.substr(format().syntax.parameter_end.find('<')));
  const std::string tag = end.substr(0, end.find('>') + 1);
  const std::string escaped = testing_support::ReplaceAll(tag, "/", "\\/");
  ToolCallConstraint constraint = ConstraintOf(GetParam(), Choice::kRequired);
  constraint.tools = ParseToolDefinitions(R"([{"name": "f", "parameters": {"properties": {
    "list": {"type": "array", "items": {"anyOf": [{"type": "string", "pattern": "TAG"}, {"const": "ENUM TAG"},
      {"type": "object", "required": ["KEY TAG"], "properties": {"KEY TAG": {}}, "maxProperties": 2}]}},
    "both": {"type": ["array", "string"]}}}}])");
  std::string& schema = constraint.tools[0].parameters;
  schema = testing_support::ReplaceAll(schema, "TAG", tag);
  Outputs outputs(constraint);
  const auto tools = std::make_shared<const ToolSet>(constraint.tools);
  const std::vector<std::pair<std::string, std::string>> values = {{"list", "[\"a TAG b\"]"},
                                                                   {"list", "[\"ENUM TAG\"]"},
                                                                   {"list", "[{\"KEY TAG\": \"TAG\"}]"},
                                                                   {"list", "[{\"KEY TAG\":{\"x\":[{\"TAG\":0}]}}]"},
                                                                   {"both", "[\"TAG\", {\"TAG\":1}]"}};
  for (const auto& [name, value] : values) {
    const std::string text = Text({{"f", {{name, OrderedJson::array()}}}});
    const auto with = [&](const std::string& spelling) {
      return testing_support::ReplaceAll(text, "[]", testing_support::ReplaceAll(value, "TAG", spelling));
    };
    EXPECT_FALSE(outputs.Accepts(with(tag))) << with(tag);
    EXPECT_TRUE(outputs.Accepts(with(escaped))) << with(escaped);
    const ToolCallOutput output = ParseToolCalls(format(), tools, "request", with(escaped));
    ASSERT_EQ(output.calls.size(), 1u);
    EXPECT_EQ(OrderedJson::parse(output.calls[0].arguments).at(name),
              OrderedJson::parse(testing_support::ReplaceAll(value, "TAG", tag)));
  }
}

class RandomCallsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RandomCallsTest, RandomOutputsAreParsedAndValid) {
  const ToolCallFormat& format = *FindToolCallFormat(GetParam());
  const std::vector<std::string> tokens = RandomTokens(format.syntax);
  const auto trie = std::make_shared<const VocabTrie>(tokens, static_cast<int64_t>(tokens.size()));
  const auto tools = std::make_shared<const ToolSet>(StrictTools());
  std::vector<std::unique_ptr<GrammarText>> schemas;
  for (const ToolDefinition& tool : tools->tools()) {
    schemas.push_back(std::make_unique<GrammarText>(tool.parameters,
                                                    JsonSchemaOptions{.any_order = true, .flexible_whitespace = true}));
  }
  std::mt19937 random(11);
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    ToolCallConstraint constraint = ConstraintOf(GetParam(), choice);
    constraint.tools = tools->tools();
    GrammarAutomaton automaton(CompileGrammar(ToolCallParams(constraint), {}), trie);
    size_t num_calls = 0;
    for (int trial = 0; trial < 400; ++trial) {
      const std::string text = RandomText(automaton, tokens, random);
      if (text.empty()) continue;
      const ToolCallOutput output = ParseToolCalls(format, tools, "request", text);
      EXPECT_EQ(output.error, "") << text;
      EXPECT_TRUE(choice == Choice::kAuto || output.text.empty()) << text;
      EXPECT_TRUE(choice == Choice::kAuto || !output.calls.empty()) << text;
      for (const ToolCall& call : output.calls) {
        const ToolDefinition* tool = tools->Find(call.name);
        ASSERT_NE(tool, nullptr) << text;
        ASSERT_TRUE(OrderedJson::accept(call.arguments)) << text;
        const std::string arguments = OrderedJson::parse(call.arguments).dump();
        EXPECT_TRUE(schemas[static_cast<size_t>(tool - tools->tools().data())]->Accepts(arguments)) << text << "\n"
                                                                                                    << arguments;
        ++num_calls;
      }
    }
    EXPECT_GT(num_calls, 40u) << GetParam();
  }
}

std::string TestName(const ::testing::TestParamInfo<std::string>& format) {
  return testing_support::ReplaceAll(format.param, "-", "_");
}

std::vector<std::string> AllFormatNames() {
  std::vector<std::string> names = FormatNames();
  names.emplace_back("openai");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Formats, ToolCallGrammarTest, ::testing::ValuesIn(FormatNames()), TestName);
INSTANTIATE_TEST_SUITE_P(Formats, RandomCallsTest, ::testing::ValuesIn(AllFormatNames()), TestName);

TEST(ToolCallGrammarTokensTest, MarkersThatAreSpecialTokensAreWrittenAsTokens) {
  const std::string text = CallsText(FindToolCallFormat("hermes")->syntax, {{"get_time", OrderedJson::object()}});
  for (const Choice choice : {Choice::kAuto, Choice::kRequired}) {
    Outputs outputs(ConstraintOf("hermes", choice), {"<tool_call>", "</tool_call>"});
    EXPECT_TRUE(outputs.Accepts(text));
    EXPECT_FALSE(outputs.Accepts(text, /*with_tokens=*/false));
    EXPECT_FALSE(outputs.Accepts("<tool_call>"));
  }
}

TEST(ToolCallGrammarTokensTest, MarkersInsideATextAreFound) {
  const std::string text = CallsText(FindToolCallFormat("kimi_k2")->syntax, {{"get_time", OrderedJson::object()}});
  Outputs outputs(ConstraintOf("kimi_k2", Choice::kAuto),
                  {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
                   "<|tool_call_argument_begin|>", "<|tool_call_end|>"});
  EXPECT_TRUE(outputs.Accepts(text)) << text;
  // A model may leave out the section.
  EXPECT_TRUE(
      outputs.Accepts("<|tool_call_begin|>functions.get_time:0<|tool_call_argument_begin|>{}<|tool_call_end|>"));
  EXPECT_FALSE(outputs.Accepts("<|tool_call_begin|>functions.get_time<|tool_call_argument_begin|>{}<|tool_call_end|>"));
}

std::string ErrorOf(const ToolCallConstraint& constraint, std::vector<std::string>* warnings = nullptr) {
  try {
    CompileGrammar(ToolCallParams(constraint), {}, warnings);
    return "";
  } catch (const RequestError& error) {
    return error.what();
  }
}

TEST(ToolCallGrammarErrorsTest, ASchemaThatCannotBeEnforcedIsAnErrorOrAWarning) {
  ToolCallConstraint constraint = ConstraintOf("hermes", Choice::kRequired);
  constraint.tools = ParseToolDefinitions(R"([{"name": "f", "parameters": {"$ref": "http://example.com/x"}}])");
  const std::string error = ErrorOf(constraint);
  EXPECT_TRUE(error.starts_with("tool f: JSON schema: #/$ref: ")) << error;
  constraint.must_call = false;
  std::vector<std::string> warnings;
  EXPECT_EQ(ErrorOf(constraint, &warnings), "");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings[0].starts_with("tool f: its calls may have any arguments: JSON schema: #/$ref: "))
      << warnings[0];
  Outputs outputs(constraint);
  EXPECT_TRUE(outputs.Accepts("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n</tool_call>"));
  constraint.tools[0].strict = true;
  EXPECT_EQ(ErrorOf(constraint), error);
}

TEST(ToolCallGrammarErrorsTest, ArgumentsAreAnObject) {
  ToolCallConstraint constraint = ConstraintOf("hermes", Choice::kRequired);
  constraint.tools = ParseToolDefinitions(R"([{"name": "f", "parameters": {"properties": {"a": {"type": "null"}}}}])");
  Outputs outputs(constraint);
  EXPECT_TRUE(outputs.Accepts("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":null}}\n</tool_call>"));
  EXPECT_FALSE(outputs.Accepts("<tool_call>\n{\"name\": \"f\", \"arguments\": 1}\n</tool_call>"));
  constraint.tools[0].parameters = R"({"type": "string"})";
  EXPECT_EQ(ErrorOf(constraint), "tool f: JSON schema: #/type: the arguments of a tool are an object");
}

TEST(ToolCallGrammarErrorsTest, NamesThatAFormatCannotWriteAreErrors) {
  ToolCallConstraint constraint = ConstraintOf("pythonic", Choice::kRequired);
  constraint.tools = ParseToolDefinitions(R"([{"name": "a/b"}, {"name": "c"}])");
  EXPECT_EQ(ErrorOf(constraint), "tool a/b: its name cannot be written in the format pythonic");
  constraint.must_call = false;
  EXPECT_EQ(ErrorOf(constraint), "");
  EXPECT_TRUE(Outputs(constraint).Accepts("[c()]"));
  EXPECT_TRUE(Outputs(constraint).Accepts("[a/b(]"));  // the parser reads text
  constraint.tools.pop_back();
  EXPECT_TRUE(Outputs(constraint).Accepts("[c(]"));
  constraint = ConstraintOf("glm45", Choice::kRequired);
  constraint.tools = ParseToolDefinitions(R"([{"name": "f", "parameters": {"properties": {"<b>": {}}}}])");
  EXPECT_EQ(ErrorOf(constraint), "tool f: the parameter <b> cannot be written in the format glm45");
}

TEST(ToolCallConstraintTest, TextsAreReadBack) {
  const ToolCallConstraint constraint = ConstraintOf("kimi", Choice::kRequired, /*parallel_calls=*/false);
  const ToolCallConstraint read = ParseToolCallConstraint(ToolCallParams(constraint).text);
  EXPECT_EQ(read.format, constraint.format);
  EXPECT_EQ(read.must_call, true);
  EXPECT_EQ(read.parallel_calls, false);
  ASSERT_EQ(read.tools.size(), constraint.tools.size());
  EXPECT_EQ(read.tools[3].name, "send-mail.v2");
  EXPECT_EQ(read.tools[3].parameters, constraint.tools[3].parameters);
}

}  // namespace
}  // namespace vllm
