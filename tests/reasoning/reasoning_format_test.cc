// Tests which family of markers is found for a tokenizer and a chat template.
#include "engine/reasoning/reasoning_format.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "tests/frontend/byte_tokenizer.h"
#include "tests/support/thinking_model.h"

namespace vllm {
namespace {

using testing::AddedToken;

std::string Detected(const std::string& chat_template, const std::vector<AddedToken>& tokens) {
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = testing::MakeByteTokenizer(tokens);
  const auto format = DetectReasoningFormat(chat_template, tokenizer);
  if (format == nullptr) return "none";
  return std::string(format->family->name) + (format->kind == ReasoningFormat::Kind::kText ? " by text" : "");
}

const std::vector<AddedToken> kThink = {{"<think>", false}, {"</think>", false}};

TEST(ReasoningFormatTest, NamesAndAliasesAreUnique) {
  std::set<std::string> names;
  for (const ReasoningFamily& family : ReasoningFamilies()) {
    EXPECT_TRUE(names.insert(std::string(family.name)).second) << family.name;
    std::istringstream aliases{std::string(family.aliases)};
    for (std::string alias; aliases >> alias;) EXPECT_TRUE(names.insert(alias).second) << alias;
    EXPECT_EQ(FindReasoningFamily(family.name), &family);
  }
  EXPECT_EQ(FindReasoningFamily("nothing"), nullptr);
}

TEST(ReasoningFormatTest, MarkersAreFoundAsTokens) {
  EXPECT_EQ(Detected("", {}), "none");
  EXPECT_EQ(Detected("", kThink), "qwen3");
  EXPECT_EQ(Detected("", {{"[THINK]"}, {"[/THINK]"}}), "mistral");
  EXPECT_EQ(Detected("", {{"<seed:think>"}, {"</seed:think>"}}), "seed_oss");
  EXPECT_EQ(Detected("", {{"<|channel>"}, {"<channel|>"}}), "gemma4");
  EXPECT_EQ(Detected("", {{"<|START_THINKING|>"}, {"<|END_THINKING|>"}}), "cohere");
  EXPECT_EQ(Detected("", {{"<|channel|>"}, {"<|message|>"}, {"<|start|>"}, {"<|end|>"}}), "openai_gptoss");
}

TEST(ReasoningFormatTest, MarkersThatAreNoTokensAreFoundInTheTemplate) {
  EXPECT_EQ(Detected("{{ x.split('</think>') }}", {}), "qwen3 by text");
  EXPECT_EQ(Detected("Here is my thought process: ... Here is my response:", {}), "granite by text");
  EXPECT_EQ(Detected("<think></think> and <response></response>", {}), "granite33 by text");
  EXPECT_EQ(Detected("<think>\n</think>\n<answer>", kThink), "hunyuan_a13b");
}

TEST(ReasoningFormatTest, TheTemplateDecidesBetweenFamilies) {
  std::vector<AddedToken> both = kThink;
  both.push_back({"[THINK]", true});
  both.push_back({"[/THINK]", true});
  EXPECT_EQ(Detected("[THINK] [/THINK]", both), "mistral");
  EXPECT_EQ(Detected("<think> </think>", both), "qwen3");
}

TEST(ReasoningFormatTest, OnlyNamedFamiliesBeginInside) {
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = testing::MakeByteTokenizer(kThink);
  EXPECT_FALSE(DetectReasoningFormat("", tokenizer)->begins_inside);
  EXPECT_TRUE(MakeReasoningFormat(*FindReasoningFamily("deepseek_r1"), true, tokenizer)->begins_inside);
  EXPECT_FALSE(MakeReasoningFormat(*FindReasoningFamily("qwen3"), true, tokenizer)->begins_inside);
}

TEST(ReasoningFormatTest, TheThinkingModelHasItsTags) {
  const auto tokenizer = testing_support::ThinkingTokenizer();
  const auto format = DetectReasoningFormat(testing_support::kThinkTemplate, tokenizer);
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->start_id, testing_support::kThinkId);
  EXPECT_EQ(format->end_ids, std::vector<int32_t>{testing_support::kEndThinkId});
}

}  // namespace
}  // namespace vllm
