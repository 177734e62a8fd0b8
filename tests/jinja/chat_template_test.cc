#include "tokenizer/jinja/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/jinja/real_templates.h"

namespace vllm::tokenizer {
namespace {

constexpr const char* kChatMl =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

std::string ErrorOf(const std::string& source, const RenderOptions& options = {}) {
  try {
    ChatTemplate::Parse(source)->Render({}, options);
  } catch (const ChatTemplateError& error) {
    return error.what();
  }
  return "";
}

TEST(ChatTemplateTest, MessagesAreRenderedToAPrompt) {
  const std::vector<ChatMessage> messages = {{"system", "Be brief."}, {"user", "Hi {{ x }}"}};
  const auto chat_template = ChatTemplate::Parse(kChatMl);
  EXPECT_EQ(chat_template->Render(messages, {}),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi {{ x }}<|im_end|>\n<|im_start|>assistant\n");
  RenderOptions options;
  options.add_generation_prompt = false;
  EXPECT_EQ(chat_template->Render(std::span(messages).first(1), options), "<|im_start|>system\nBe brief.<|im_end|>\n");
}

TEST(ChatTemplateTest, ExtraVariablesOverrideTheDefaults) {
  RenderOptions options;
  options.bos_token = "<s>";
  options.extra_json = R"({"enable_thinking": false, "bos_token": "<b>", "tools": [1]})";
  EXPECT_EQ(ChatTemplate::Parse("{{ bos_token }}{{ enable_thinking }}{{ tools }}{{ documents }}{{ eos_token }}")
                ->Render({}, options),
            "<b>False[1]None");
}

TEST(ChatTemplateTest, TheContextOverridesTheOptions) {
  RenderOptions options;
  options.bos_token = "<s>";
  EXPECT_EQ(ChatTemplate::Parse("{{ bos_token }}{{ add_generation_prompt }}{{ x | tojson }}")
                ->RenderJson(R"({"add_generation_prompt": false, "x": {"b": 1, "a": [2.0, "é"]}})", options),
            "<s>False{\"b\": 1, \"a\": [2.0, \"é\"]}");
}

TEST(ChatTemplateTest, MissingArgumentErrorsNameTheMethodOrFilter) {
  for (const std::string method : {"center", "ljust", "rjust", "startswith", "endswith", "removeprefix", "removesuffix",
                                   "find", "rfind", "index", "rindex", "partition", "rpartition"}) {
    const std::string error = ErrorOf("{{ 'a'." + method + "() }}");
    EXPECT_NE(error.find(method + " is missing argument"), std::string::npos) << error;
  }
  for (const std::string filter : {"selectattr", "rejectattr"}) {
    const std::string error = ErrorOf("{{ [1] | " + filter + " | list }}");
    EXPECT_NE(error.find(filter + " is missing"), std::string::npos) << error;
  }
}

TEST(ChatTemplateTest, ErrorOfAnUnclosedLoopNamesEndfor) {
  EXPECT_NE(ErrorOf("{% for x in [1] %}a").find("expected 'endfor'"), std::string::npos);
}

// These numbers are outside the range of a double. The magnitude of a number decides whether it becomes zero or
// infinity, not the sign of the exponent in its text.
TEST(ChatTemplateTest, FloatsOutOfRangeBecomeZeroOrInfinity) {
  const std::string zeros(400, '0');
  const std::string source =
      "{{ '0." + zeros + "1' | float }} {{ '1" + zeros + "e-1' | float }} {{ '1e-999' | float }}";
  EXPECT_EQ(ChatTemplate::Parse(source)->Render({}, {}), "0.0 inf 0.0");
}

TEST(ChatTemplateTest, InvalidUtf8InAMessageIsRenderedUnchanged) {
  const std::vector<ChatMessage> messages = {{"user", " \xff\xc3 "}};
  EXPECT_EQ(
      ChatTemplate::Parse("{{ messages[0].content | trim }}|{{ messages[0].content | length }}")->Render(messages, {}),
      "\xff\xc3|4");
}

TEST(ChatTemplateTest, ErrorsHaveALineNumber) {
  EXPECT_EQ(ErrorOf("a\nb{% if %}"), "chat template line 2: expected an expression, got the end of the tag");
  EXPECT_EQ(ErrorOf("a\n\n{{ raise_exception('no\ttools') }}"), "chat template line 3: no\\x09tools");
  EXPECT_EQ(ErrorOf("{{ a.b }}"), "chat template line 1: 'a' is undefined, so it has no attribute 'b'");
  EXPECT_EQ(ErrorOf("\n{% macro m() %}\n{{ 1 // 0 }}{% endmacro %}\n{{ m() }}"),
            "chat template line 3: division by zero");
  EXPECT_EQ(ErrorOf("{{ 'x' | nosuch }}"), "chat template line 1: no filter named 'nosuch'");
}

TEST(ChatTemplateTest, StrftimeNowUsesTheGivenDateAndInvalidDatesAreRejected) {
  RenderOptions options;
  options.now = "2024-02-29";
  EXPECT_EQ(ChatTemplate::Parse("{{ strftime_now('%d %b %Y %H:%M %A %j') }}")->Render({}, options),
            "29 Feb 2024 00:00 Thursday 060");
  for (const char* date : {"", "2023-02-29", "2024-13-01", "24-01-01", "2024-01-01T24:00:00", "2024-01-01x"}) {
    options.now = date;
    EXPECT_NE(ErrorOf("x", options), "") << date;
  }
  options.now.reset();
  EXPECT_EQ(ChatTemplate::Parse("{{ strftime_now('%Y') | length }}")->Render({}, options), "4");
}

TEST(ChatTemplateTest, StrftimeNowAcceptsFlagsAndWidths) {
  RenderOptions options;
  options.now = "2024-02-09";
  EXPECT_EQ(ChatTemplate::Parse("{{ strftime_now('%-d %_d %5d %^b %f%z%Z %Q %-') }}")->Render({}, options),
            "9  9 00009 FEB 000000 %Q %-");
  EXPECT_EQ(ChatTemplate::Parse("{{ strftime_now('%999999999d') }}")->Render({}, options), "%999999999d");
}

TEST(ChatTemplateTest, LetterCaseMatchesPython) {
  const auto render = [](const std::string& expression) {
    return ChatTemplate::Parse("{{ " + expression + " }}")->Render({}, {});
  };
  EXPECT_EQ(render("'ŉ ﬁ ᾳ ß' | upper"), "ʼN FI ΑΙ SS");
  EXPECT_EQ(render("\"ΑΣ. ΑΣ'Α İ\" | lower"), "ας. ασ'α i\u0307");
  EXPECT_EQ(render("'ßa ŉ ǆ ᾲ'.title()"), "Ssa ʼN ǅ \u1fba\u0345");
  EXPECT_EQ(render("'ẞ ﬁ'.casefold()"), "ss fi");
  EXPECT_EQ(render("'ΑΣ'.capitalize()"), "Ας");
  EXPECT_EQ(render("'ʰ'.islower() ~ 'ǅ'.isupper() ~ 'ⅷ'.swapcase()"), "TrueFalseⅧ");
}

TEST(ChatTemplateTest, KeepsSystemMessageIsTrueOnlyIfTheTemplateRendersIt) {
  EXPECT_TRUE(ChatTemplate::Parse(kChatMl)->KeepsSystemMessage({}));
  EXPECT_FALSE(ChatTemplate::Parse("{% for m in messages if m.role != 'system' %}{{ m.content }}{% endfor %}")
                   ->KeepsSystemMessage({}));
  EXPECT_FALSE(ChatTemplate::Parse("{% if messages[0].role == 'system' %}{{ raise_exception('no') }}{% endif %}")
                   ->KeepsSystemMessage({}));
}

TEST(ChatTemplateTest, UsesVariableIsTrueIfTheVariableIsReadBeforeItIsAssigned) {
  const auto chat_template = ChatTemplate::Parse(
      "{% set own = 1 %}{{ own }}{% if tools %}{% for t in tools %}{{ t.name }}{% endfor %}{% endif %}");
  EXPECT_TRUE(chat_template->UsesVariable("tools"));
  EXPECT_FALSE(chat_template->UsesVariable("own"));
  EXPECT_FALSE(chat_template->UsesVariable("name"));
  EXPECT_FALSE(chat_template->UsesVariable("enable_thinking"));
}

// The templates of gpt-oss and EXAONE 4 have a macro with a parameter `tools`, and call it with the variable `tools`.
TEST(ChatTemplateTest, UsesVariableLooksBehindVariablesOfTheTemplateWithTheSameName) {
  const auto uses = [](const std::string& text) { return ChatTemplate::Parse(text)->UsesVariable("tools"); };
  EXPECT_TRUE(uses("{% macro show(tools) %}{{ tools }}{% endmacro %}{{ show(tools) }}"));
  EXPECT_FALSE(uses("{% macro show(tools) %}{{ tools }}{% endmacro %}{{ show(messages) }}"));
  EXPECT_TRUE(uses("{% macro show() %}{{ tools }}{% endmacro %}{{ show() }}"));
  EXPECT_TRUE(uses("{% for tools in messages %}{{ tools }}{% endfor %}{{ tools }}"));
  EXPECT_FALSE(uses("{% for tools in messages %}{{ tools }}{% endfor %}"));
  EXPECT_TRUE(uses("{% if messages %}{% set tools = none %}{% endif %}{{ tools }}"));
  EXPECT_FALSE(uses("{% set tools = none %}{{ tools }}"));
  EXPECT_TRUE(uses("{% block b %}{{ tools }}{% endblock %}"));
}

TEST(ChatTemplateTest, ThreadsShareOneTemplate) {
  const auto chat_template = ChatTemplate::Parse(kChatMl);
  std::vector<std::thread> threads;
  std::vector<std::string> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::vector<ChatMessage> messages = {{"user", std::to_string(i)}};
      for (int round = 0; round < 200; ++round) results[i] = chat_template->Render(messages, {});
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i], "<|im_start|>user\n" + std::to_string(i) + "<|im_end|>\n<|im_start|>assistant\n");
  }
}

class FindChatTemplateTest : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("chat_template_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  void Write(const std::string& name, const std::string& text) { std::ofstream(directory_ / name) << text; }
  std::optional<ChatTemplateSource> Find() const { return FindChatTemplate(directory_.string()); }

  std::filesystem::path directory_;
};

TEST_F(FindChatTemplateTest, DirectoryWithoutATemplateReturnsNullopt) {
  EXPECT_FALSE(Find());
  Write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": null})");
  EXPECT_FALSE(Find());
}

TEST_F(FindChatTemplateTest, TemplateAndSpecialTokensComeFromTokenizerConfig) {
  Write("tokenizer_config.json",
        R"({"chat_template": "T", "bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>"})");
  const auto source = Find();
  ASSERT_TRUE(source);
  EXPECT_EQ(source->text, "T");
  EXPECT_EQ(source->bos_token, "<s>");
  EXPECT_EQ(source->eos_token, "</s>");
  EXPECT_TRUE(source->origin.ends_with("tokenizer_config.json"));
}

TEST_F(FindChatTemplateTest, TheDefaultOfSeveralTemplatesIsUsed) {
  Write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "A"}, {"name": "default", "template": "B"}]})");
  ASSERT_TRUE(Find());
  EXPECT_EQ(Find()->text, "B");
}

TEST_F(FindChatTemplateTest, ChatTemplateJinjaTakesPrecedenceOverTokenizerConfig) {
  Write("tokenizer_config.json", R"({"chat_template": "T", "eos_token": "</s>"})");
  Write("chat_template.jinja", "J\n");
  Write("special_tokens_map.json", R"({"bos_token": {"content": "<b>"}, "eos_token": "<other>"})");
  const auto source = Find();
  ASSERT_TRUE(source);
  EXPECT_EQ(source->text, "J\n");
  EXPECT_EQ(source->bos_token, "<b>");
  EXPECT_EQ(source->eos_token, "</s>");
}

TEST_F(FindChatTemplateTest, ErrorsNameTheDamagedFile) {
  for (const char* config : {"{", "[]", R"({"chat_template": 5})", R"({"chat_template": [5]})",
                             R"({"chat_template": [{"name": "default"}]})"}) {
    Write("tokenizer_config.json", config);
    try {
      Find();
      ADD_FAILURE() << config;
    } catch (const ChatTemplateError& error) {
      EXPECT_NE(std::string(error.what()).find("tokenizer_config.json"), std::string::npos) << error.what();
    }
  }
}

TEST_F(FindChatTemplateTest, TheTemplateOfARealModelRenders) {
  const std::string directory = RealData("tokenizers/qwen2.5");
  if (!std::filesystem::exists(directory)) GTEST_SKIP() << "reference data not found: " << directory;
  const auto source = FindChatTemplate(directory);
  ASSERT_TRUE(source.has_value()) << directory;
  const std::vector<ChatMessage> messages = {{"user", "Hi"}};
  RenderOptions options;
  options.bos_token = source->bos_token;
  options.eos_token = source->eos_token;
  EXPECT_NE(ChatTemplate::Parse(source->text)->Render(messages, options).find("Hi"), std::string::npos);
}

}  // namespace
}  // namespace vllm::tokenizer
