#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/jinja/real_templates.h"
#include "tokenizer/jinja/chat_template.h"

namespace vllm::tokenizer {
namespace {

TEST(ChatTemplateGoldenTest, EveryCaseRendersOrFailsAsInJinja2) {
  // tests/golden/chat_template_fresh.py sets this variable to a file with its own cases.
  const char* other = std::getenv("VLLMCLI_CHAT_TEMPLATES");
  const std::string path = other != nullptr ? other : std::string(VLLMCLI_TEST_DATA) + "/chat_template/golden.json";
  const auto golden = nlohmann::ordered_json::parse(ReadText(path));
  const std::string context = golden.at("context").dump();
  RenderOptions options;
  options.now = "2024-07-26T15:04:05";
  for (const auto& golden_case : golden.at("cases")) {
    const auto source = golden_case.at("template").get<std::string>();
    SCOPED_TRACE(source);
    const bool is_rejected = golden_case.contains("refused");
    try {
      const std::string text = ChatTemplate::Parse(source)->RenderJson(context, options);
      if (is_rejected) {
        ADD_FAILURE() << "rendered: " << text;
      } else {
        EXPECT_EQ(text, golden_case.at("text").get<std::string>());
      }
    } catch (const ChatTemplateError& error) {
      EXPECT_TRUE(is_rejected) << error.what();
    }
  }
}

}  // namespace
}  // namespace vllm::tokenizer
