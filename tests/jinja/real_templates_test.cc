#include "tests/jinja/real_templates.h"

#include <gtest/gtest.h>

#include "tokenizer/jinja/chat_template.h"

namespace vllm::tokenizer {
namespace {

RenderOptions OptionsOf(const RealRendering& rendering) {
  RenderOptions options;
  options.bos_token = rendering.bos_token;
  options.eos_token = rendering.eos_token;
  options.now = "2024-07-26";
  return options;
}

TEST(RealTemplatesTest, EveryTemplateRendersOrIsRejectedAsByJinja2) {
  if (!HasRealTemplates()) GTEST_SKIP() << "reference data not found: " << RealData("chat-template-vectors");
  int num_checked = 0;
  for (const RealRendering& rendering : RealRenderings()) {
    SCOPED_TRACE(rendering.template_name + " / " + rendering.context_name + " / " + rendering.second_opinion);
    try {
      const auto chat_template = ChatTemplate::Parse(rendering.source);
      const std::string text = chat_template->RenderJson(rendering.context_json, OptionsOf(rendering));
      EXPECT_FALSE(rendering.rejected) << text;
      if (!rendering.rejected) {
        EXPECT_EQ(text, rendering.expected);
      }
    } catch (const ChatTemplateError& error) {
      EXPECT_TRUE(rendering.rejected) << error.what();
    }
    ++num_checked;
  }
  EXPECT_GE(num_checked, 500);
}

}  // namespace
}  // namespace vllm::tokenizer
