#include "app/chat/conversation.h"
#include "tokenizer/loaders/load_tokenizer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace vllm::app {
namespace {

std::unique_ptr<PromptRenderer> Renderer(const std::string& text) {
  tokenizer::ChatTemplateSource source;
  source.text = text;
  source.eos_token = "</s>";
  return std::make_unique<PromptRenderer>(std::move(source), std::nullopt);
}

constexpr char kPlainTemplate[] =
    "{% for m in messages %}{{ m.role }}: {{ m.content | trim }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}";

class ConversationTest : public testing::Test {
 protected:
  void SetUp() override {
    tokenizer_ = tokenizer::LoadTokenizerJson(std::string(VLLMCLI_TEST_DATA) + "/tokenizer/byte_fallback.json");
    const std::optional<int32_t> eos = tokenizer_->TokenToId("</s>");
    ASSERT_TRUE(eos && tokenizer_->IsSpecial(*eos));
    eos_ = *eos;
  }
  Conversation Make(const PromptRenderer& renderer) { return Conversation(renderer, *tokenizer_, {eos_}); }
  std::string Text(const std::vector<int32_t>& ids) { return tokenizer_->Decode(ids, false); }
  static bool StartsWith(const std::vector<int32_t>& ids, const std::vector<int32_t>& prefix) {
    return ids.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), ids.begin());
  }

  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  int32_t eos_ = 0;
};

TEST_F(ConversationTest, NextPromptKeepsTheSampledTokens) {
  const auto renderer = Renderer(kPlainTemplate);
  Conversation conversation = Make(*renderer);
  conversation.Reset("be kind");
  std::vector<int32_t> history = conversation.BuildPrompt("hello", 1000);
  // The sampled ids are byte tokens. The tokenizer would encode the same text with other ids.
  std::vector<int32_t> answer;
  for (const char* byte : {"<0x68>", "<0x69>"}) answer.push_back(tokenizer_->TokenToId(byte).value());
  answer.push_back(eos_);
  conversation.CommitReply(answer, "hi");
  history.insert(history.end(), answer.begin(), answer.end());
  const std::vector<int32_t> next = conversation.BuildPrompt("and now?", 1000);
  EXPECT_TRUE(StartsWith(next, history));
  EXPECT_FALSE(conversation.was_rerendered());
  // The EOS token is not repeated.
  EXPECT_NE(next[history.size()], eos_);
  EXPECT_NE(Text(next).find("hi</s>"), std::string::npos) << Text(next);
}

TEST_F(ConversationTest, CutOffAnswerGetsTheEosTokenOfTheTemplate) {
  const auto renderer = Renderer(kPlainTemplate);
  Conversation conversation = Make(*renderer);
  std::vector<int32_t> history = conversation.BuildPrompt("hello", 1000);
  const std::vector<int32_t> answer = tokenizer_->Encode("well then", false);
  conversation.CommitReply(answer, "well then");
  history.insert(history.end(), answer.begin(), answer.end());
  const std::vector<int32_t> next = conversation.BuildPrompt("more", 1000);
  ASSERT_TRUE(StartsWith(next, history));
  EXPECT_EQ(next[history.size()], eos_);
}

TEST_F(ConversationTest, WholeConversationIsEncodedAgainIfTheTemplateRewritesHistory) {
  const auto renderer = Renderer(
      "{% for m in messages %}{% if loop.last %}{{ m.content }}{% else %}[{{ m.role }}] {{ m.content }}{% endif %}"
      "</s>{% endfor %}");
  Conversation conversation = Make(*renderer);
  conversation.BuildPrompt("one", 1000);
  conversation.CommitReply({eos_}, "two");
  const std::vector<int32_t> next = conversation.BuildPrompt("three", 1000);
  EXPECT_TRUE(conversation.was_rerendered());
  EXPECT_EQ(next, tokenizer_->Encode("[user] one</s>[assistant] two</s>three</s>", false));
}

TEST_F(ConversationTest, OldestTurnsAreDroppedAndCounted) {
  const auto renderer = Renderer(kPlainTemplate);
  Conversation conversation = Make(*renderer);
  conversation.Reset("sys");
  for (const char* message : {"first message here", "second message here", "third message here"}) {
    ASSERT_FALSE(conversation.BuildPrompt(message, 1000).empty());
    conversation.CommitReply({eos_}, "");
  }
  const int64_t limit = conversation.num_tokens();
  const std::vector<int32_t> next = conversation.BuildPrompt("fourth message here", limit);
  EXPECT_LE(static_cast<int64_t>(next.size()), limit);
  EXPECT_GE(conversation.num_dropped_turns(), 1);
  const std::string text = Text(next);
  EXPECT_EQ(text.find("first"), std::string::npos);
  EXPECT_NE(text.find("sys"), std::string::npos);
  EXPECT_NE(text.find("fourth"), std::string::npos);
}

TEST_F(ConversationTest, FullContextIsCutToAboutHalfSoThatMostTurnsExtendTheLastPrompt) {
  const auto renderer = Renderer(kPlainTemplate);
  Conversation conversation = Make(*renderer);
  conversation.Reset("sys");
  constexpr int64_t kLimit = 400;
  std::vector<int32_t> history;
  int num_full = 0;
  int num_extended = 0;
  for (int i = 0; i < 60; ++i) {
    const std::vector<int32_t> next = conversation.BuildPrompt("message number " + std::to_string(i), kLimit);
    ASSERT_FALSE(next.empty());
    ASSERT_LE(static_cast<int64_t>(next.size()), kLimit);
    EXPECT_NE(Text(next).find("sys"), std::string::npos);
    if (conversation.num_dropped_turns() > 0) {
      ++num_full;
      EXPECT_LE(static_cast<int64_t>(next.size()), kLimit * 6 / 10) << i;
      EXPECT_GE(static_cast<int64_t>(next.size()), kLimit * 4 / 10) << i;
    }
    if (num_full > 0 && StartsWith(next, history)) ++num_extended;
    std::vector<int32_t> answer = tokenizer_->Encode("an answer", false);
    answer.push_back(eos_);
    conversation.CommitReply(answer, "an answer");
    history = next;
    history.insert(history.end(), answer.begin(), answer.end());
  }
  EXPECT_GE(num_full, 3);
  EXPECT_GT(num_extended, 3 * num_full);
}

TEST_F(ConversationTest, LongMessageKeepsSomeHistory) {
  const auto renderer = Renderer(kPlainTemplate);
  Conversation conversation = Make(*renderer);
  for (int i = 0; i < 10; ++i) {
    ASSERT_FALSE(conversation.BuildPrompt("message number " + std::to_string(i), 1000).empty());
    conversation.CommitReply({eos_}, "");
  }
  const int64_t limit = conversation.num_tokens();
  const std::string message(static_cast<size_t>(limit * 6 / 10), 'x');
  const std::vector<int32_t> next = conversation.BuildPrompt(message, limit);
  EXPECT_LE(static_cast<int64_t>(next.size()), limit);
  EXPECT_GT(conversation.num_dropped_turns(), 0);
  EXPECT_LT(conversation.num_dropped_turns(), 10);
}

TEST_F(ConversationTest, MessageThatDoesNotFitChangesNothing) {
  const auto renderer = Renderer(kPlainTemplate);
  Conversation conversation = Make(*renderer);
  std::vector<int32_t> history = conversation.BuildPrompt("one", 1000);
  conversation.CommitReply({eos_}, "");
  history.push_back(eos_);
  EXPECT_TRUE(conversation.BuildPrompt(std::string(2000, 'x'), 100).empty());
  EXPECT_EQ(conversation.num_turns(), 1);
  EXPECT_TRUE(StartsWith(conversation.BuildPrompt("two", 1000), history));
}

TEST_F(ConversationTest, DiscardedMessageIsForgotten) {
  const auto renderer = Renderer(kPlainTemplate);
  Conversation conversation = Make(*renderer);
  const std::vector<int32_t> one = conversation.BuildPrompt("one", 1000);
  conversation.DiscardPending();
  EXPECT_EQ(conversation.BuildPrompt("one", 1000), one);
}

}  // namespace
}  // namespace vllm::app
