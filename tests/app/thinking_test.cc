// Tests the thinking settings: template variables of --think, --reasoning-parser, and the texts that are shown.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/batch/input/row_parser.h"
#include "app/cli/command_line.h"
#include "app/model/thinking_mode.h"
#include "app/output/result_json.h"
#include "app/output/thinking_display.h"
#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"
#include "tests/support/thinking_model.h"

namespace vllm::app {
namespace {

using std::chrono::milliseconds;

PromptRenderer Renderer(const std::string& text, const std::string& variables = "") {
  tokenizer::ChatTemplateSource source;
  source.text = text;
  return PromptRenderer(std::move(source), std::nullopt, variables);
}

std::string Variables(const std::string& mode, const std::string& text) {
  return MakeThinkSwitch(ParseThinkMode(mode), Renderer(text)).variables_json;
}
std::string Note(const std::string& mode, const std::string& text) {
  return MakeThinkSwitch(ParseThinkMode(mode), Renderer(text)).note;
}

TEST(ThinkModeTest, TemplateGetsOnlyTheVariablesThatItReads) {
  EXPECT_EQ(Variables("off", "{{ enable_thinking }}"), "{\"enable_thinking\":false}");
  EXPECT_EQ(Variables("on", "{{ thinking }}"), "{\"thinking\":true}");
  EXPECT_EQ(Variables("high", "{{ reasoning_effort }}"), "{\"reasoning_effort\":\"high\"}");
  EXPECT_EQ(Variables("on", "{{ reasoning_effort }}"), "");
  EXPECT_EQ(Variables("low", "{{ enable_thinking }}{{ reasoning_effort }}"),
            "{\"enable_thinking\":true,\"reasoning_effort\":\"low\"}");
  EXPECT_EQ(Variables("off", "{{ thinking_budget }}"), "{\"thinking_budget\":0}");
  EXPECT_EQ(Variables("on", "{{ messages[0].thinking }}"), "") << "a field of a message is no switch";
  EXPECT_EQ(Variables("", "{{ enable_thinking }}"), "");
}

TEST(ThinkModeTest, MissingSwitchesAreReported) {
  EXPECT_EQ(Note("off", "{{ enable_thinking }}"), "");
  EXPECT_EQ(Note("high", "{{ reasoning_effort }}"), "");
  EXPECT_EQ(Note("on", "{{ messages }}"), "the chat template has no thinking switch");
  EXPECT_EQ(Note("high", "{{ enable_thinking }}"), "the chat template has no levels of thinking; high means on");
  EXPECT_EQ(Note("off", "{{ reasoning_effort }}"),
            "the chat template cannot switch thinking off; it is only hidden (--thinking-budget 0 ends it at once)");
  EXPECT_EQ(Note("off", "{% if reasoning_effort != 'none' %}x{% endif %}"), "");
}

TEST(ThinkModeTest, UnknownModeIsAnError) {
  EXPECT_EQ(MessageOf<ConfigError>([] { ParseThinkMode("maybe"); }),
            "think: must be on, off, low, medium or high (maybe)");
}

TEST(ThinkModeTest, TemplateVariablesOfTheUserTakePrecedence) {
  PromptRenderer renderer = Renderer("{{ enable_thinking }} {{ other }}", "{\"enable_thinking\":true,\"other\":1}");
  renderer.SetThinkVariables("{\"enable_thinking\":false}");
  EXPECT_EQ(renderer.Render({}, true), "True 1");
  PromptRenderer alone = Renderer("{{ enable_thinking }}");
  alone.SetThinkVariables("{\"enable_thinking\":false}");
  EXPECT_EQ(alone.Render({}, true), "False");
  alone.SetThinkVariables("");
  EXPECT_EQ(alone.Render({}, true), "");
}

TEST(ReasoningParserFlagTest, FormatIsChosenByName) {
  const auto tokenizer = testing_support::ThinkingTokenizer();
  const auto choose = [&](const std::string& name) {
    const Settings settings = ParseCommandLine({"run", "--reasoning-parser", name}, Command::kRun).settings;
    return ChooseReasoningFormat(settings, nullptr, tokenizer);
  };
  EXPECT_EQ(choose("auto")->family->name, "qwen3");
  EXPECT_EQ(choose("none"), nullptr);
  EXPECT_EQ(choose("glm45")->family->name, "qwen3");
  EXPECT_EQ(choose("granite")->kind, ReasoningFormat::Kind::kText);
  EXPECT_EQ(MessageOf<ConfigError>([&] { choose("granit"); }),
            "--reasoning-parser: unknown (granit); did you mean granite?");
  EXPECT_EQ(MessageOf<ConfigError>([&] { choose("gpt_oss"); }),
            "--reasoning-parser gpt_oss: the model's tokenizer does not have the markers of this format");
}

TEST(ThinkingDisplayTest, SummaryHasWholeSeconds) {
  EXPECT_EQ(ThoughtSummary(milliseconds(0), 1), "thought briefly, 1 token");
  EXPECT_EQ(ThoughtSummary(milliseconds(999), 12), "thought briefly, 12 tokens");
  EXPECT_EQ(ThoughtSummary(milliseconds(1000), 12), "thought for 1 s, 12 tokens");
  EXPECT_EQ(ThoughtSummary(milliseconds(59999), 412), "thought for 59 s, 412 tokens");
  EXPECT_EQ(ThoughtSummary(milliseconds(80000), 2412), "thought for 1 min 20 s, 2,412 tokens");
}

TEST(ThinkingDisplayTest, TimesOfContinuedThoughtsAddUp) {
  ThinkingDisplay display(ShowThinking::kHidden);
  const auto start = ThinkingDisplay::Clock::time_point(milliseconds(1000000));
  display.AddTime(milliseconds(500));
  display.Think("", 1, start);
  display.Think("", 2, start + milliseconds(700));
  display.End(start + milliseconds(1200));
  display.End(start + milliseconds(9000));
  EXPECT_EQ(display.time(), milliseconds(1700));
}

TEST(ResultJsonTest, ThoughtAndAnswerAreSeparateFields) {
  CompletionOutput output;
  output.text = "<think>hm</think>Yes";
  output.token_ids = {1, 2, 3, 4};
  ReasoningParts parts{"hm", "Yes", {1, 2, 3}, {4}};
  const auto json = CompletionJson(output, false, nullptr, &parts);
  EXPECT_EQ(json["text"], "Yes");
  EXPECT_EQ(json["token_ids"], nlohmann::ordered_json({4}));
  EXPECT_EQ(json["reasoning"], "hm");
  EXPECT_EQ(json["reasoning_token_ids"], nlohmann::ordered_json({1, 2, 3}));
  parts.reasoning.clear();
  EXPECT_TRUE(CompletionJson(output, false, nullptr, &parts)["reasoning"].is_null());
  EXPECT_FALSE(CompletionJson(output, false, nullptr).contains("reasoning"));
}

TEST(ThinkingRowTest, RowsSetTheBudgetAndTheTemplateVariables) {
  const PromptRenderer renderer = Renderer(
      "{{ messages[0].content }} {{ reasoning_effort }} {{ enable_thinking }} {{ messages[0].reasoning_content }}");
  const RowParser parser(InputFormat::kJsonLines, {}, &renderer);
  RowId id;
  const auto parse = [&](const std::string& fields) {
    return parser.Parse("{\"messages\":[{\"role\":\"user\",\"content\":\"hi\",\"reasoning\":\"r\"}]," + fields + "}",
                        id);
  };
  const auto text = [](const BatchRow& row) { return std::get<TextPrompt>(row.prompt).text; };
  BatchRow row = parse("\"thinking_token_budget\":7,\"reasoning_effort\":\"low\"");
  EXPECT_EQ(row.params.thinking_token_budget, 7);
  EXPECT_TRUE(row.is_chat);
  EXPECT_EQ(text(row), "hi low  r");
  EXPECT_EQ(text(parse("\"reasoning_effort\":\"none\"")), "hi none False r");
  EXPECT_EQ(text(parse("\"reasoning_effort\":\"none\",\"chat_template_kwargs\":{\"enable_thinking\":true}")),
            "hi none True r");
  EXPECT_FALSE(parser.Parse("{\"prompt\":\"hi\",\"thinking_token_budget\":null}", id).is_chat);
}

}  // namespace
}  // namespace vllm::app
