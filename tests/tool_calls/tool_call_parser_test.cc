// Tests ToolCallParser: outputs of models with the calls that other programs find in them, and outputs that are not
// calls or are damaged. Each output is also fed byte by byte.
#include "engine/tool_calls/tool_call_parser.h"

#include <gtest/gtest.h>

#include "engine/tool_calls/text/json_text_scanner.h"
#include "tests/tool_calls/call_text.h"

namespace vllm {
namespace {

using testing_support::EventsOf;
using testing_support::OrderedJson;

std::shared_ptr<const ToolSet> Tools() {
  return std::make_shared<const ToolSet>(ParseToolDefinitions(R"([
    {"name": "get_weather", "parameters": {"properties": {"city": {"type": "string"}, "days": {"type": "integer"},
      "note": {"type": ["string", "null"]}, "hourly": {"type": "boolean"}, "list": {"type": "array"}}}},
    {"name": "get_time"}, {"name": "register_user"}, {"name": "searchTool"}, {"name": "getOpenIncidentsTool"},
    {"name": "add"}, {"name": "sub"}, {"name": "do_something_cool"}])"));
}

// Returns "text|name(arguments)|...|error", after checking that byte by byte gives the same events.
std::string Parsed(const std::string& format_name, const std::string& text) {
  const ToolCallFormat& format = *FindToolCallFormat(format_name);
  std::vector<size_t> bytes;
  for (size_t i = 1; i < text.size(); ++i) bytes.push_back(i);
  EXPECT_EQ(EventsOf(format, Tools(), text, bytes), EventsOf(format, Tools(), text, {})) << text;
  const ToolCallOutput output = ParseToolCalls(format, Tools(), "request", text);
  std::string result = output.text;
  if (!output.reasoning.empty()) result += "|thought: " + output.reasoning;
  for (const ToolCall& call : output.calls) {
    result += "|" + call.name + "(" + call.arguments + ")";
    if (!call.error.empty()) {
      result += " broken";
    } else {
      EXPECT_TRUE(OrderedJson::accept(call.arguments)) << call.arguments;
    }
  }
  if (!output.error.empty()) result += "|error";
  return result;
}

// vLLM, tests/tool_parsers/test_llama3_json_tool_parser.py
TEST(ToolCallParserTest, LlamaWritesBareObjects) {
  EXPECT_EQ(Parsed("llama3_json", R"({"name": "searchTool", "parameters": {"query": "test query", "limit": 10}})"),
            R"(|searchTool({"query": "test query", "limit": 10}))");
  EXPECT_EQ(Parsed("llama3_json", R"({"name": "searchTool", "arguments": {"query": "test"}})"),
            R"(|searchTool({"query": "test"}))");
  EXPECT_EQ(Parsed("llama3_json", R"(<|python_tag|>{"name": "searchTool", "parameters": {}})"), "|searchTool({})");
  for (const std::string separator : {"; ", " ; ", ";", ";\n", "\n"}) {
    EXPECT_EQ(Parsed("llama3_json", R"({"name": "searchTool", "parameters": {"query": "test1"}})" + separator +
                                        R"({"name": "getOpenIncidentsTool", "parameters": {}})"),
              R"(|searchTool({"query": "test1"})|getOpenIncidentsTool({}))");
  }
  EXPECT_EQ(Parsed("llama3_json", R"(Here is the result: {"name": "getOpenIncidentsTool", "parameters": {}} More?)"),
            "Here is the result:  More?|getOpenIncidentsTool({})");
  EXPECT_EQ(Parsed("llama3_json", R"({"name": "searchTool", "parameters": {"q": "test {value} [c]","n": {"i": "}"}}})"),
            R"(|searchTool({"q": "test {value} [c]","n": {"i": "}"}}))");
}

TEST(ToolCallParserTest, OtherObjectsAreTextForLlama) {
  for (const std::string text :
       {"This is just some text without any tool calls", R"({"parameters": {}})", R"({"name": "searchTool"})",
        R"({"name": "Alice", "age": 3})", R"({"city": "Paris", "name": "searchTool"})",
        R"({"name": "searchTool", "parameters": [1]})", "if (x) { y(); }\n{\n\"a\": 1 }", "{", "{\"name\": \"sea",
        "{\n  \"name\": \"unknown\", \"parameters\": {}}", "{hello world[A(A=\t)A(A=,\t\t)A(A=,\t"}) {
    EXPECT_EQ(Parsed("llama3_json", text), text);
  }
}

// vLLM, tests/tool_parsers/test_hermes_tool_parser.py; llama.cpp, tests/test-chat.cpp
TEST(ToolCallParserTest, HermesWritesTaggedObjects) {
  EXPECT_EQ(Parsed("hermes", "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1.5}}\n</tool_call>"),
            "|add({\"a\": 1.5})");
  EXPECT_EQ(Parsed("hermes", R"(<tool_call>{"arguments": {"a": {"b": "}"}}, "name": "add"}</tool_call>)"),
            R"(|add({"a": {"b": "}"}}))");
  EXPECT_EQ(Parsed("hermes", "Let me think.\n\n<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>\n"),
            "Let me think.|add({})");
  EXPECT_EQ(Parsed("hermes", R"(<tool_call>{"name": "add", "arguments": {}})"), "|add({})") << "no closing tag";
  EXPECT_EQ(Parsed("hermes", R"(<tool_call>{"name": "add", "arguments": {}}</tool)"), "|add({})");
  EXPECT_EQ(Parsed("hermes", R"(<tool_call>{"name": "add"}</tool_call>)"), "|add({})");
  EXPECT_EQ(Parsed("hermes", R"(<tool_call>{"name": "add", "arguments": null}</tool_call>)"), "|add({})");
  EXPECT_EQ(Parsed("hermes", R"(<tool_call>{"id": 7, "name": "add", "arguments": {}, "x": [1, {}]}</tool_call>)"),
            "|add({})");
  EXPECT_EQ(Parsed("hermes", "a <tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call> b"), "a  b|add({})");
  EXPECT_EQ(Parsed("hermes", "a<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>b"), "a\nb|add({})");
  EXPECT_EQ(Parsed("hermes", "A </tool_call> b < c <tool_cal <tool"), "A </tool_call> b < c <tool_cal <tool");
  EXPECT_EQ(Parsed("hermes", " plain \n text \n"), " plain \n text \n");
}

TEST(ToolCallParserTest, FunctionsMayBeNested) {
  EXPECT_EQ(Parsed("llama3_json", R"({"type": "function", "function": {"name": "add", "parameters": {"a": 1}}})"),
            R"(|add({"a": 1}))");
  EXPECT_EQ(Parsed("llama3_json", R"({"type": "function", "name": "add", "parameters": {"a": 1}})"),
            R"(|add({"a": 1}))");
}

// vLLM PR 45216
TEST(ToolCallParserTest, ArgumentsMayBeAString) {
  EXPECT_EQ(Parsed("granite", R"(<|tool_call|>[{"name": "add", "arguments": "{\"a\": \"x\\\"y\", \"b\": [1]}"}])"),
            R"(|add({"a": "x\"y", "b": [1]}))");
  EXPECT_EQ(Parsed("granite", R"(<|tool_call|>[{"name": "add", "arguments": ""}])"), "|add({})");
  EXPECT_EQ(Parsed("granite", R"(<|tool_call|>[{"arguments": "{\"a\": 1}", "name": "add"}])"), R"(|add({"a": 1}))");
}

TEST(ToolCallParserTest, RawLineBreaksInStringsAreEscaped) {
  EXPECT_EQ(Parsed("hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": \"x\ny\tz\"}}</tool_call>"),
            R"(|add({"a": "x\ny\tz"}))");
}

// vLLM, tests/tool_parsers/test_granite_tool_parser.py
TEST(ToolCallParserTest, GraniteWritesArrays) {
  EXPECT_EQ(Parsed("granite", R"(<|tool_call|> [{"name": "get_weather", "arguments": {"city": "Tokyo"}}])"),
            R"(|get_weather({"city": "Tokyo"}))");
  EXPECT_EQ(Parsed("granite", R"(<tool_call> [{"name": "get_weather", "arguments": {"city": "Tokyo"}}])"),
            R"(|get_weather({"city": "Tokyo"}))");
  EXPECT_EQ(Parsed("granite", R"(<|tool_call|> [{"arguments": {"city": "Tokyo"}, "name": "get_weather"}, )"
                              R"({"arguments": {"timezone": "Asia/Tokyo"}, "name": "get_time"}])"),
            R"(|get_weather({"city": "Tokyo"})|get_time({"timezone": "Asia/Tokyo"}))");
  EXPECT_EQ(Parsed("granite", "Let me check.\n<|tool_call|> [{\"name\": \"add\", \"arguments\": {}}]\nDone."),
            "Let me check.\n\nDone.|add({})");
}

// vLLM, tests/tool_parsers/test_phi4mini_tool_parser.py
TEST(ToolCallParserTest, PhiWritesFunctools) {
  EXPECT_EQ(Parsed("phi4_mini_json", R"(functools[{"name": "get_weather", "arguments": {"city": "Tokyo"}}])"),
            R"(|get_weather({"city": "Tokyo"}))");
  EXPECT_EQ(Parsed("phi4_mini_json", R"(<|tool_call|>[{"name": "add", "arguments": {}}]<|/tool_call|>)"), "|add({})");
  EXPECT_EQ(Parsed("phi4_mini_json", "import functools\nfunctools.reduce"), "import functools\nfunctools.reduce");
  EXPECT_EQ(Parsed("phi4_mini_json", "functools[ This is just text ]"), "functools[ This is just text ]|error");
  EXPECT_EQ(Parsed("phi4_mini_json", "functools[] This is just text"), "This is just text");
}

// vLLM, tests/tool_parsers/test_mistral_tool_parser.py
TEST(ToolCallParserTest, MistralWritesNamesOrArrays) {
  for (const std::string format : {"mistral", "mistral_v11"}) {
    EXPECT_EQ(Parsed(format, R"([TOOL_CALLS][{"name": "add", "arguments":{"a": 3.5, "b": 4}}])"),
              R"(|add({"a": 3.5, "b": 4}))");
    EXPECT_EQ(Parsed(format, R"([TOOL_CALLS] [ {"name":"add" , "arguments" : {"a": 3, "b": 4} } , )"
                             R"({"name": "sub", "arguments": {}, "id": "123456789"}])"),
              R"(|add({"a": 3, "b": 4})|sub({}))");
    EXPECT_EQ(Parsed(format, R"([TOOL_CALLS]add{"a": 3.5, "b": 4})"), R"(|add({"a": 3.5, "b": 4}))");
    EXPECT_EQ(Parsed(format, R"([TOOL_CALLS]add[ARGS]{"a": 1}[TOOL_CALLS]sub[CALL_ID]ABC123def[ARGS]{})"),
              R"(|add({"a": 1})|sub({}))");
    EXPECT_EQ(Parsed(format, R"(Sure.[TOOL_CALLS]add[ARGS]{"a": "[ARGS]"})"), R"(Sure.|add({"a": "[ARGS]"}))");
  }
}

// vLLM, tests/tool_parsers/test_deepseekv3_tool_parser.py and test_deepseekv31_tool_parser.py
TEST(ToolCallParserTest, DeepSeekWritesSections) {
  EXPECT_EQ(Parsed("deepseek_v3",
                   "Hi<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1}\n```"
                   "<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>sub\n```json\n{}\n```"
                   "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
            "Hi|add({\"a\": 1})|sub({})");
  EXPECT_EQ(Parsed("deepseek_v31",
                   "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>foo<｜tool▁sep｜>{\"x\":1}<｜tool▁call▁end｜>"
                   "<｜tool▁calls▁end｜>"),
            "|foo({\"x\":1})");
  EXPECT_EQ(Parsed("deepseek_v32",
                   "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"get_weather\">\n<｜DSML｜parameter name=\"city\" "
                   "string=\"true\">5</｜DSML｜parameter>\n<｜DSML｜parameter name=\"x\" string=\"false\">5"
                   "</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>"),
            "|get_weather({\"city\": \"5\", \"x\": 5})");
}

// vLLM, tests/tool_parsers/test_kimi_k2_tool_parser.py
TEST(ToolCallParserTest, KimiWritesIds) {
  const std::string text =
      "I'll check. <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:3 <|tool_call_argument_begin|>"
      "{\"html\": \"<div>\"}<|tool_call_end|><|tool_call_begin|>get_time:4<|tool_call_argument_begin|>{}"
      "<|tool_call_end|><|tool_calls_section_end|>";
  EXPECT_EQ(Parsed("kimi_k2", text), "I'll check.|get_weather({\"html\": \"<div>\"})|get_time({})");
  const ToolCallOutput output = ParseToolCalls(*FindToolCallFormat("kimi_k2"), Tools(), "r", text);
  EXPECT_EQ(output.calls[0].id, "functions.get_weather:3");
  EXPECT_EQ(output.calls[1].id, "get_time:4");
}

// vLLM, tests/tool_parsers/test_qwen3coder_tool_parser.py
TEST(ToolCallParserTest, QwenCoderValuesHaveTheTypesOfTheSchema) {
  EXPECT_EQ(
      Parsed("qwen3_coder",
             "<tool_call>\n<function=get_weather>\n<parameter=city>\n42\n</parameter>\n<parameter=days>\n42\n"
             "</parameter>\n<parameter=hourly>\nTrue\n</parameter>\n<parameter=note>\nnull\n</parameter>\n"
             "<parameter=list>\n['a', None]\n</parameter>\n</function>\n</tool_call>"),
      "|get_weather({\"city\": \"42\", \"days\": 42, \"hourly\": true, \"note\": null, \"list\": [\"a\", null]})");
  EXPECT_EQ(Parsed("qwen3_coder", "<function=add>\n<parameter=a>\nx\n\ny\n</parameter>\n</function>\n</tool_call>"),
            "|add({\"a\": \"x\\n\\ny\"})");
  EXPECT_EQ(
      Parsed("qwen3_coder", "<tool_call>\n<function=get_weather>\n<parameter=days>\nmany\n</parameter>\n</function>"),
      "|get_weather({\"days\": \"many\"})");
  EXPECT_EQ(Parsed("qwen3_coder", "<tool_call><function=add></function></tool_call>"), "|add({})");
  EXPECT_EQ(Parsed("qwen3_coder",
                   "<tool_call>\n<function=get_weather>\n<parameter=note>\nnullify\n</parameter>\n"
                   "<parameter=city>\n</parameter>\n</function>\n</tool_call>"),
            "|get_weather({\"note\": \"nullify\", \"city\": \"\"})");
}

// vLLM, tests/tool_parsers/test_glm47_moe_tool_parser.py
TEST(ToolCallParserTest, GlmWorksWithoutLineBreaks) {
  EXPECT_EQ(Parsed("glm45",
                   "Hi<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>"
                   "<tool_call>get_time</tool_call>"),
            "Hi|get_weather({\"city\": \"Oslo\"})|get_time({})");
}

// vLLM, tests/tool_parsers/test_pythonic_tool_parser.py and test_olmo3_tool_parser.py
TEST(ToolCallParserTest, PythonLiteralsBecomeJson) {
  EXPECT_EQ(Parsed("pythonic",
                   "[register_user(name='John Doe', age=37, address={'city': 'San Francisco', 'state': 'CA'}, "
                   "role=None, passed_test=True, aliases=['John', 'Johnny'],)]"),
            R"(|register_user({"name": "John Doe", "age": 37, "address": {"city": "San Francisco", "state": "CA"}, )"
            R"("role": null, "passed_test": true, "aliases": ["John", "Johnny"]}))");
  EXPECT_EQ(Parsed("pythonic", "[get_weather(), do_something_cool(additional_data={}), do_something_cool(steps=[])]"),
            R"(|get_weather({})|do_something_cool({"additional_data": {}})|do_something_cool({"steps": []}))");
  EXPECT_EQ(Parsed("pythonic", R"([get_weather(city='Martha\'s Vineyard', metric='\"cool units\"')])"),
            R"(|get_weather({"city": "Martha's Vineyard", "metric": "\"cool units\""}))");
  EXPECT_EQ(Parsed("pythonic", R"([add(a=-1.5e3, b=.5, c=+2, d=1_000, e=(1, 2), f='\u00e9\x41\101\U0001F600', g=5.)])"),
            "|add({\"a\": -1.5e3, \"b\": 0.5, \"c\": 2, \"d\": 1000, \"e\": [1, 2], \"f\": \"éAA😀\", \"g\": 5.0})");
  EXPECT_EQ(Parsed("olmo3", "<function_calls>get_weather(city='A')\nget_time()</function_calls>"),
            R"(|get_weather({"city": "A"})|get_time({}))");
  EXPECT_EQ(Parsed("llama4_pythonic", "<|python_start|>[get_time()]<|python_end|>"), "|get_time({})");
}

TEST(ToolCallParserTest, OtherListsAreTextForPythonicModels) {
  for (const std::string text : {"[1, 2]", "[]", "[unknown(a=1)]", "See [get_time()] here", "[get_time]",
                                 "[get_time(1)]", "[link](http://x)", "["}) {
    EXPECT_EQ(Parsed("pythonic", text), text);
  }
}

// vLLM, tests/tool_parsers/test_functiongemma_tool_parser.py and test_gemma4_tool_parser.py
TEST(ToolCallParserTest, GemmaMarksStrings) {
  EXPECT_EQ(Parsed("functiongemma",
                   "Let me check. <start_function_call>call:get_weather{city:<escape>San Francisco"
                   "<escape>,days:<escape>42<escape>}<end_function_call><start_function_call>call:"
                   "get_time{zone:<escape>UTC<escape>}<end_function_call>"),
            R"(Let me check.|get_weather({"city": "San Francisco", "days": 42})|get_time({"zone": "UTC"}))");
  EXPECT_EQ(Parsed("functiongemma",
                   "<start_function_call>call:add{q:<escape>a<escape>l:<escape>b<escape>}"
                   "<end_function_call>"),
            R"(|add({"q": "a", "l": "b"}))")
      << "no comma";
  EXPECT_EQ(Parsed("gemma4",
                   "<|tool_call>call:add{a:<|\"|>x, \"y\"<|\"|>,b:{c:[1,true,<|\"|>}<|\"|>],d:{}},e:None}"
                   "<tool_call|>"),
            R"(|add({"a": "x, \"y\"", "b": {"c": [1, true, "}"], "d": {}}, "e": null}))");
  EXPECT_EQ(Parsed("gemma4", R"(<|tool_call>call:add{a:{"b:{\"}" : 1, "": "x"}}<tool_call|>)"),
            R"(|add({"a": {"b:{\"}": 1, "": "x"}}))");
}

// vLLM, tests/tool_parsers/test_openai_tool_parser.py
TEST(ToolCallParserTest, HarmonyMessagesAreSeparated) {
  EXPECT_EQ(Parsed("openai",
                   "<|channel|>analysis<|message|>I need it.<|end|><|start|>assistant<|channel|>commentary"
                   " to=functions.get_weather <|constrain|>json<|message|>{\"city\": \"Tokyo\"}<|call|>"),
            "|thought: I need it.|get_weather({\"city\": \"Tokyo\"})");
  EXPECT_EQ(Parsed("openai", " to=functions.get_time<|channel|>commentary json<|message|>{}"), "|get_time({})");
  EXPECT_EQ(Parsed("openai", "<|channel|>final<|message|>The answer.<|return|>"), "The answer.");
  EXPECT_EQ(Parsed("openai",
                   "<|channel|>commentary<|message|>Plan.<|end|><|start|>assistant<|channel|>commentary "
                   "to=functions.add code<|message|>not json<|call|>"),
            "Plan.\n<|start|>assistant<|channel|>commentary to=functions.add code<|message|>not json|error");
  EXPECT_EQ(Parsed("openai", "Only text."), "Only text.");
}

TEST(ToolCallParserTest, DamagedCallsStayText) {
  for (const std::string text :
       {"<tool_call>\nnot json\n</tool_call>", "<tool_call>{\"name\": 5}</tool_call>", "<tool_call>{\"name\": \"f\",}",
        "<tool_call>", "Hi <tool_call>{\"nam", "<tool_call>{\"name\": \"f\", \"arguments\": 5}</tool_call>",
        "<tool_call>{\"arguments\": {\"a\": 1}}</tool_call>", "<tool_call>[1]</tool_call>",
        "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>"}) {
    EXPECT_EQ(Parsed("hermes", text), text + "|error");
  }
  EXPECT_EQ(Parsed("mistral", "[TOOL_CALLS] nothing"), "[TOOL_CALLS] nothing|error");
  EXPECT_EQ(Parsed("kimi_k2", "<|tool_calls_section_begin|>x"), "<|tool_calls_section_begin|>x|error");
  EXPECT_EQ(Parsed("gemma4", "<|tool_call>call it"), "<|tool_call>call it|error");
  EXPECT_EQ(Parsed("qwen3_coder", "<tool_call>\n{\"name\": \"f\"}"), "<tool_call>\n{\"name\": \"f\"}|error");
}

TEST(ToolCallParserTest, CallsAreFoundAfterDamage) {
  EXPECT_EQ(Parsed("hermes", "<tool_call>oops<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>"),
            "<tool_call>oops|add({})|error");
  EXPECT_EQ(Parsed("hermes", "<tool_call><tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>"),
            "<tool_call>|add({})|error");
  EXPECT_EQ(Parsed("granite", R"(<|tool_call|>[{"name": "add", "arguments": {}}, oops])"), ", oops]|add({})|error");
}

TEST(ToolCallParserTest, BrokenArgumentsEndTheCall) {
  EXPECT_EQ(Parsed("hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 'x'}}</tool_call>"),
            "'x'}}</tool_call>|add({\"a\": ) broken|error");
  EXPECT_EQ(Parsed("hermes", "<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 1"),
            "|add({\"a\": 1) broken|error");
  EXPECT_EQ(Parsed("pythonic", "[add(a=x)] b"), "x)] b|add({\"a\": ) broken|error") << "a variable";
  EXPECT_EQ(Parsed("qwen3_coder", "<tool_call>\n<function=add>\n<parameter=a>\nx"), "x|add({\"a\": ) broken|error");
}

TEST(ToolCallParserTest, HeldBytesAreLimited) {
  const ToolCallFormat& format = *FindToolCallFormat("hermes");
  ToolCallParser parser(format, Tools(), "r");
  std::vector<ToolCallEvent> events;
  const std::string text =
      "<tool_call>{\"arguments\": {\"a\": \"" + std::string(200'000, 'x') + "\"}, \"name\": \"add\"}";
  size_t num_fed = 0;
  ToolCallOutput output;
  for (const char c : text) {
    events.clear();
    parser.Feed(std::string_view(&c, 1), events);
    output.Add(events);
    ++num_fed;
    ASSERT_LE(num_fed - output.text.size(), ToolCallParser::kMaxHeldBytes + 1);
  }
  parser.Finish(events);
  EXPECT_EQ(output.text, text);
  EXPECT_EQ(parser.error(), "parsing tool call 0: no name in the first 65536 bytes");
}

TEST(ToolCallParserTest, TheNumberOfCallsIsNotLimited) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "[TOOL_CALLS]add[ARGS]{}";
  const ToolCallOutput output = ParseToolCalls(*FindToolCallFormat("mistral_v11"), Tools(), "r", text);
  EXPECT_EQ(output.calls.size(), 3000u);
  EXPECT_EQ(output.text + output.error, "");
}

TEST(ToolCallParserTest, TheDepthOfArgumentsIsLimited) {
  const auto parsed = [](size_t depth) {
    std::string arguments;
    for (size_t i = 1; i < depth; ++i) arguments += "{\"a\":";
    arguments += "{}" + std::string(depth - 1, '}');
    return ParseToolCalls(*FindToolCallFormat("mistral_v11"), Tools(), "r", "[TOOL_CALLS]add[ARGS]" + arguments);
  };
  ToolCallOutput output = parsed(kMaxArgumentDepth);
  ASSERT_EQ(output.calls.size(), 1u);
  EXPECT_EQ(output.calls[0].error, "");
  output = parsed(kMaxArgumentDepth + 1);
  ASSERT_EQ(output.calls.size(), 1u);
  EXPECT_EQ(output.calls[0].error, "expected a JSON object as arguments");
}

// A value that may be a string or a list is known to be a list only at its end.
TEST(ToolCallParserTest, LongValuesBetweenTagsKeepTheirType) {
  std::string list = "[1";
  for (int i = 0; i < 50'000; ++i) list += ", 1";
  list += "]";
  const std::string text = "<function=add>\n<parameter=a>\n" + list + "\n</parameter>\n</function>\n</tool_call>";
  const ToolCallOutput output = ParseToolCalls(*FindToolCallFormat("qwen3_coder"), Tools(), "r", text);
  ASSERT_EQ(output.calls.size(), 1u);
  EXPECT_EQ(output.calls[0].arguments, "{\"a\": " + list + "}");
}

TEST(ToolCallParserTest, TheBeginningOfACutCallIsNotText) {
  const auto parsed = [](const std::string& format, const std::string& text) {
    const ToolCallOutput output = ParseToolCalls(*FindToolCallFormat(format), Tools(), "r", text, /*is_cut=*/true);
    std::string result = output.text;
    for (const ToolCall& call : output.calls)
      result += "|" + call.name + "(" + call.arguments + (call.is_cut ? "" : ")");
    return result;
  };
  EXPECT_EQ(parsed("hermes", "a <tool_c"), "a ");
  EXPECT_EQ(parsed("hermes", "a <tool_call>\n{\"name\": \"add\", \"argu"), "a");
  EXPECT_EQ(parsed("hermes", "a <tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": [1"), "a|add({\"a\": [1");
  EXPECT_EQ(parsed("hermes", "a <tool> b"), "a <tool> b");
  EXPECT_EQ(parsed("granite", "<|tool_call|>[{\"name\": \"add\", \"arguments\": {}}, {\"na"), "|add({})");
  EXPECT_EQ(parsed("qwen3_coder", "<tool_call>\n<function=add>\n<parameter=a>\nx"), "|add({\"a\": ");
  EXPECT_EQ(parsed("openai", "<|channel|>commentary to=functions.add <|constrain|>json<|mess"), "");
  EXPECT_EQ(parsed("openai", "<|channel|>commentary to=functions.add <|constrain|>json<|message|>"), "");
  EXPECT_EQ(parsed("openai", "<|channel|>commentary to=functions.add<|message|>{\"a\""), "|add({\"a\"");
  // Without a marker, only the name of a tool makes it a call.
  EXPECT_EQ(parsed("llama3_json", "{\"name\": \"ad"), "{\"name\": \"ad");
  EXPECT_EQ(parsed("llama3_json", "{\"name\": \"Alice\", \"age\""), "{\"name\": \"Alice\", \"age\"");
  EXPECT_EQ(parsed("llama3_json", "{\"name\": \"add\", \"par"), "");
  EXPECT_EQ(parsed("llama3_json", "<|python_tag|>{\"na"), "");
  EXPECT_EQ(parsed("pythonic", "[ad"), "[ad");
  EXPECT_EQ(parsed("pythonic", "[add(a"), "");
  EXPECT_EQ(parsed("pythonic", "[add(a=1"), "|add({\"a\": ");
}

TEST(ToolCallParserTest, IdsAndIndicesCountTheCalls) {
  const ToolCallOutput output =
      ParseToolCalls(*FindToolCallFormat("mistral"), Tools(), "r", R"([TOOL_CALLS][{"name": "add"}, {"name": "sub"}])");
  ASSERT_EQ(output.calls.size(), 2u);
  EXPECT_EQ(output.calls[0].id.size(), 9u);
  EXPECT_NE(output.calls[0].id, output.calls[1].id);
}

TEST(ToolCallParserTest, TextStreamsAtOnce) {
  ToolCallParser parser(*FindToolCallFormat("hermes"), Tools(), "r");
  std::vector<ToolCallEvent> events;
  parser.Feed("Hello", events);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text, "Hello");
  parser.Feed(" <tool", events);
  EXPECT_EQ(events.size(), 1u) << "the space and the beginning of the marker are held";
  parser.Feed("s>", events);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].text, " <tools>");
}

}  // namespace
}  // namespace vllm
