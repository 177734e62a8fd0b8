// Tests the table of formats: names, detection, and that calls written as the table says are parsed.
#include "engine/tool_calls/syntax/tool_call_format.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <sstream>

#include "tests/tool_calls/call_text.h"

namespace vllm {
namespace {

using testing_support::CallsText;
using testing_support::EventsOf;
using testing_support::NamedCall;
using testing_support::OrderedJson;
using testing_support::TestTools;
using testing_support::WeatherArguments;

std::string Detected(std::string_view chat_template, const std::set<std::string>& tokens = {}) {
  const ToolCallFormat* format =
      DetectToolCallFormat(chat_template, [&](std::string_view text) { return tokens.contains(std::string(text)); });
  return format == nullptr ? "none" : std::string(format->name);
}

TEST(ToolCallFormatTest, NamesAndAliasesAreUnique) {
  std::set<std::string> names;
  for (const ToolCallFormat& format : ToolCallFormats()) {
    EXPECT_TRUE(names.insert(std::string(format.name)).second) << format.name;
    std::istringstream aliases{std::string(format.aliases)};
    for (std::string alias; aliases >> alias;) {
      EXPECT_TRUE(names.insert(alias).second) << alias;
      EXPECT_EQ(FindToolCallFormat(alias), &format);
    }
    EXPECT_EQ(FindToolCallFormat(format.name), &format);
  }
  EXPECT_EQ(FindToolCallFormat("nothing"), nullptr);
}

TEST(ToolCallFormatTest, TriggersBeginTheText) {
  for (const ToolCallFormat& format : ToolCallFormats()) {
    EXPECT_TRUE(CallsText(format.syntax, {{"f", OrderedJson::object()}}).starts_with(format.syntax.trigger))
        << format.name;
  }
}

TEST(ToolCallFormatTest, TemplatesDecide) {
  EXPECT_EQ(Detected("{{ '<tool_call>' }}"), "hermes");
  EXPECT_EQ(Detected("<tool_call>\n<function=f>\n<parameter=a>"), "qwen3_coder");
  EXPECT_EQ(Detected("<tool_call>f\n<arg_key>"), "glm45");
  EXPECT_EQ(Detected("[TOOL_CALLS]"), "mistral");
  EXPECT_EQ(Detected("[TOOL_CALLS]f[ARGS]"), "mistral_v11");
  EXPECT_EQ(Detected("[TOOL_CALLS]", {"[ARGS]"}), "mistral_v11");
  EXPECT_EQ(Detected("<｜tool▁calls▁begin｜>function<｜tool▁sep｜>f\\n```json"), "deepseek_v3");
  EXPECT_EQ(Detected("<｜tool▁calls▁begin｜>f<｜tool▁sep｜>{}"), "deepseek_v31");
  EXPECT_EQ(Detected("<｜DSML｜function_calls>"), "deepseek_v32");
  EXPECT_EQ(Detected("<|tool_call_begin|>"), "kimi_k2");
  EXPECT_EQ(Detected("{{ '<minimax:tool_call>' }}"), "minimax_m2");
  EXPECT_EQ(Detected("<|channel|>commentary"), "openai");
  EXPECT_EQ(Detected("<start_function_call>"), "functiongemma");
  EXPECT_EQ(Detected("<|tool_call>call:"), "gemma4");
  EXPECT_EQ(Detected("<|tool_call|>[]<|/tool_call|>"), "phi4_mini_json");
  EXPECT_EQ(Detected("respond with <|tool_call|> followed by"), "granite");
  EXPECT_EQ(Detected("{{ messages }}"), "none");
}

TEST(ToolCallFormatTest, TokensDecideIfTheTemplateHasNoMarker) {
  EXPECT_EQ(Detected("{{ tools }}", {"<tool_call>"}), "hermes");
  EXPECT_EQ(Detected("{{ tools }}", {"<|tool_call_start|>"}), "lfm2");
  EXPECT_EQ(Detected("{{ tools }}", {"<|python_tag|>"}), "llama3_json");
  EXPECT_EQ(Detected("{{ tools }}", {"[TOOL_CALLS]", "[ARGS]"}), "mistral_v11");
  EXPECT_EQ(Detected("{{ tools }}", {"<|tool_call|>", "<|/tool_call|>"}), "phi4_mini_json");
  EXPECT_EQ(Detected("{{ tools }}", {"<|tool_call|>"}), "granite");
}

TEST(ToolCallFormatTest, TheVariantOfMistralIsChosenByTheVocabulary) {
  const auto has_args = [](std::string_view text) { return text == "[ARGS]"; };
  EXPECT_EQ(ChooseToolCallFormat("mistral", "", has_args)->name, "mistral_v11");
  EXPECT_EQ(ChooseToolCallFormat("mistral", "", nullptr)->name, "mistral");
  EXPECT_EQ(ChooseToolCallFormat("auto", "<tool_call>", nullptr)->name, "hermes");
  EXPECT_EQ(ChooseToolCallFormat("nothing", "<tool_call>", nullptr), nullptr);
}

class SyntaxTest : public ::testing::TestWithParam<std::string> {
 protected:
  const ToolCallFormat& format() const { return *FindToolCallFormat(GetParam()); }

  void ExpectRoundTrip(const std::string& before, const std::vector<NamedCall>& calls) const {
    const std::string text = before + CallsText(format().syntax, calls);
    const ToolCallOutput output = ParseToolCalls(format(), TestTools(), "request", text);
    SCOPED_TRACE(text);
    EXPECT_EQ(output.text, before.substr(0, before.find_last_not_of(" \n") + 1));
    EXPECT_EQ(output.error, "");
    ASSERT_EQ(output.calls.size(), calls.size());
    for (size_t i = 0; i < calls.size(); ++i) {
      EXPECT_EQ(output.calls[i].name, calls[i].name);
      EXPECT_EQ(output.calls[i].error, "");
      ASSERT_TRUE(OrderedJson::accept(output.calls[i].arguments)) << output.calls[i].arguments;
      EXPECT_EQ(OrderedJson::parse(output.calls[i].arguments), calls[i].arguments);
    }
  }
};

TEST_P(SyntaxTest, CallsAreParsed) {
  const OrderedJson weather = WeatherArguments();
  ExpectRoundTrip("", {{"get_weather", weather}});
  ExpectRoundTrip("Let me see.\n", {{"get_weather", weather}});
  ExpectRoundTrip("", {{"get_time", OrderedJson::object()}});
  ExpectRoundTrip("", {{"get_weather", weather}, {"get_time", OrderedJson::object()}, {"add", {{"a", 1}, {"b", 2}}}});
  ExpectRoundTrip("", {{"get_weather", {{"city", "two\nlines\n"}, {"note", "null and void"}, {"unit", "celsius"}}}});
  ExpectRoundTrip("",
                  {{"get_weather", {{"city", "東京 🗼"}, {"unknown", "no number"}, {"tags", OrderedJson::array()}}}});
}

TEST_P(SyntaxTest, EverySplitGivesTheSameEvents) {
  const std::string text = "Hi <tool [x\n" +
                           CallsText(format().syntax, {{"get_weather", {{"city", "A </b> 'é' \"q\""}, {"days", 3}}},
                                                       {"get_time", OrderedJson::object()}}) +
                           "\n Done.";
  const std::vector<ToolCallEvent> whole = EventsOf(format(), TestTools(), text, {});
  std::vector<size_t> bytes;
  for (size_t i = 1; i < text.size(); ++i) {
    EXPECT_EQ(EventsOf(format(), TestTools(), text, {i}), whole) << "split at " << i;
    bytes.push_back(i);
  }
  EXPECT_EQ(EventsOf(format(), TestTools(), text, bytes), whole);
}

TEST_P(SyntaxTest, CutOutputsGiveTheSameEventsForEverySplit) {
  const std::string text = "Hi\n" + CallsText(format().syntax, {{"get_weather", {{"city", "A"}, {"days", 3}}},
                                                                {"get_time", OrderedJson::object()}});
  for (size_t size = 0; size < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    std::vector<size_t> bytes;
    for (size_t i = 1; i < cut.size(); ++i) bytes.push_back(i);
    EXPECT_EQ(EventsOf(format(), TestTools(), cut, bytes), EventsOf(format(), TestTools(), cut, {}))
        << "cut at " << size;
  }
}

TEST_P(SyntaxTest, NothingOfACutCallIsText) {
  const std::vector<NamedCall> calls = {{"get_weather", {{"city", "A"}, {"days", 3}}},
                                        {"get_time", OrderedJson::object()}};
  const std::string text = "Hi\n" + CallsText(format().syntax, calls);
  const ToolCallOutput whole = ParseToolCalls(format(), TestTools(), "request", text);
  for (size_t size = 3; size < text.size(); ++size) {
    const std::string cut = text.substr(0, size);
    const ToolCallOutput output = ParseToolCalls(format(), TestTools(), "request", cut, /*is_cut=*/true);
    // Without a marker, the text may be a call only once it has the name of a tool.
    const bool may_be_text = format().is_bare && size <= text.find("get_weather") + std::string("get_weather").size();
    const std::string expected = may_be_text ? cut : "Hi";
    EXPECT_EQ(output.text.substr(0, output.text.find_last_not_of(" \n") + 1),
              expected.substr(0, expected.find_last_not_of(" \n") + 1))
        << cut;
    ASSERT_LE(output.calls.size(), calls.size());
    for (size_t i = 0; i < output.calls.size(); ++i) {
      const ToolCall& call = output.calls[i];
      EXPECT_EQ(call.name, calls[i].name);
      EXPECT_TRUE(whole.calls[i].arguments.starts_with(call.arguments)) << call.arguments;
      EXPECT_EQ(call.error, call.is_cut ? "the output ends inside the arguments" : "");
      EXPECT_TRUE(call.is_cut ? i + 1 == output.calls.size() : call.arguments == whole.calls[i].arguments) << cut;
    }
  }
}

TEST_P(SyntaxTest, ArgumentsStreamAsTheyGrow) {
  const std::string city(500, 'x');
  const std::string text = CallsText(format().syntax, {{"get_weather", {{"city", city}}}});
  const size_t middle = text.find(city) + 400;
  ToolCallParser parser(format(), TestTools(), "request");
  std::vector<ToolCallEvent> events;
  parser.Feed(text.substr(0, middle), events);
  ToolCallOutput output;
  output.Add(events);
  ASSERT_EQ(output.calls.size(), 1u);
  EXPECT_EQ(output.calls[0].arguments.find(std::string(400, 'x')) != std::string::npos, true)
      << output.calls[0].arguments;
  EXPECT_TRUE(parser.is_inside_call());
}

TEST_P(SyntaxTest, RandomCallsAreParsed) {
  std::mt19937 random(7);
  const std::vector<std::string> pieces = {"a", "\"", "'", "\\", "{", "}", "[", "]", "(", ")", ",",  ":",
                                           " ", "<",  ">", "é",  "=", "#", "/", "n", "5", "|", "｜", "true"};
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<NamedCall> calls;
    const size_t num_calls = 1 + random() % 3;
    for (size_t i = 0; i < num_calls; ++i) {
      std::string city;
      const size_t num_pieces = random() % 12;
      for (size_t j = 0; j < num_pieces; ++j) city += pieces[random() % pieces.size()];
      calls.push_back({"get_weather", {{"city", city}, {"days", random() % 100}, {"tags", {city, "x"}}}});
      if (random() % 4 == 0) calls.back().arguments["options"] = {{"k", city}, {"l", {city, 1, false}}};
    }
    ExpectRoundTrip("", calls);
  }
}

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const ToolCallFormat& format : ToolCallFormats()) names.emplace_back(format.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Formats, SyntaxTest, ::testing::ValuesIn(FormatNames()), [](const auto& param_info) {
  return testing_support::ReplaceAll(param_info.param, "-", "_");
});

}  // namespace
}  // namespace vllm
