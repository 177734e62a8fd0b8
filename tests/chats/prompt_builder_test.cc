// Tests PromptBuilder with conversations in memory: a chat asks, answers with given tokens, and branches.
#include "app/chat/prompt_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "tests/chats/fake_chat.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::app {
namespace {

constexpr char kPlainTemplate[] =
    "{% for m in messages %}{{ m.role }}: {{ m.content | trim }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}";

class PromptBuilderTest : public testing::Test {
 protected:
  void SetUp() override {
    tokenizer_ = tokenizer::LoadTokenizerJson(std::string(VLLMCLI_TEST_DATA) + "/tokenizer/byte_fallback.json");
    const std::optional<int32_t> eos = tokenizer_->TokenToId("</s>");
    ASSERT_TRUE(eos && tokenizer_->IsSpecial(*eos));
    eos_ = *eos;
  }
  FakeChat Chat(const PromptRenderer& renderer) { return FakeChat(renderer, *tokenizer_, eos_); }
  std::string Text(const Ids& ids) { return tokenizer_->Decode(ids, false); }
  Ids Encode(const std::string& text) { return tokenizer_->Encode(text, false); }

  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
  std::unique_ptr<PromptRenderer> plain_ = Renderer(kPlainTemplate);
  int32_t eos_ = 0;
};

TEST_F(PromptBuilderTest, NextPromptKeepsTheSampledTokens) {
  FakeChat chat = Chat(*plain_);
  chat.SetSystem("be kind");
  chat.Ask("hello");
  // The sampled ids are byte tokens. The tokenizer would encode the same text with other ids.
  Ids answer;
  for (const char* byte : {"<0x68>", "<0x69>"}) answer.push_back(tokenizer_->TokenToId(byte).value());
  answer.push_back(eos_);
  chat.Answer(answer, "hi");
  const Ids history = chat.ids();
  const BuiltPrompt next = chat.Ask("and now?");
  EXPECT_TRUE(StartsWith(next.token_ids, history));
  EXPECT_EQ(next.rewrite, BuiltPrompt::Rewrite::kNone);
  // The EOS token is not repeated.
  EXPECT_NE(next.token_ids[history.size()], eos_);
  EXPECT_NE(Text(next.token_ids).find("hi</s>"), std::string::npos) << Text(next.token_ids);
}

TEST_F(PromptBuilderTest, InterruptedAnswerGetsTheEosTokenOfTheTemplate) {
  FakeChat chat = Chat(*plain_);
  chat.Ask("hello");
  chat.Answer(Encode("well then"), "well then");
  const Ids history = chat.ids();
  const BuiltPrompt next = chat.Ask("more");
  ASSERT_TRUE(StartsWith(next.token_ids, history));
  EXPECT_EQ(next.token_ids[history.size()], eos_);
}

TEST_F(PromptBuilderTest, WholeConversationIsEncodedAgainIfTheTemplateRewritesHistory) {
  const auto renderer = Renderer(
      "{% for m in messages %}{% if loop.last %}{{ m.content }}{% else %}[{{ m.role }}] {{ m.content }}{% endif %}"
      "</s>{% endfor %}");
  FakeChat chat = Chat(*renderer);
  chat.Ask("one");
  chat.Answer({eos_}, "two");
  const BuiltPrompt next = chat.Ask("three");
  EXPECT_EQ(next.rewrite, BuiltPrompt::Rewrite::kByTemplate);
  EXPECT_EQ(next.ids_begin, 0);
  EXPECT_EQ(next.token_ids, Encode("[user] one</s>[assistant] two</s>three</s>"));
}

TEST_F(PromptBuilderTest, MessagesOfAnotherModelAreEncodedAgainOnce) {
  FakeChat first(*plain_, *tokenizer_, eos_, 1);
  first.Ask("one");
  Ids answer;
  for (const char* byte : {"<0x68>", "<0x69>"}) answer.push_back(tokenizer_->TokenToId(byte).value());
  first.Answer(answer, "hi");
  FakeChat second(*plain_, *tokenizer_, eos_, 2);
  for (const StoredMessage& message : first.tree().AllMessages()) second.tree().Add(message);
  const BuiltPrompt next = second.Ask("two");
  EXPECT_EQ(next.rewrite, BuiltPrompt::Rewrite::kOtherModel);
  EXPECT_EQ(next.token_ids, Encode("user: one</s>\nassistant: hi</s>\nuser: two</s>\nassistant: "));
  second.Answer({eos_}, "");
  const Ids history = second.ids();
  const BuiltPrompt last = second.Ask("three");
  EXPECT_EQ(last.rewrite, BuiltPrompt::Rewrite::kNone);
  EXPECT_TRUE(StartsWith(last.token_ids, history));
}

TEST_F(PromptBuilderTest, BranchesShareTheTokensBeforeThem) {
  FakeChat chat = Chat(*plain_);
  chat.Ask("one");
  const int64_t question = chat.tree().current_id();
  const Ids prompt = chat.ids();
  chat.Answer({eos_}, "");
  const Ids first_answer = chat.ids();
  chat.Ask("two");
  chat.tree().MoveTo(question);
  EXPECT_EQ(chat.ids(), prompt);
  chat.Answer(Encode("other"), "other");
  const BuiltPrompt next = chat.Ask("two");
  EXPECT_TRUE(StartsWith(next.token_ids, prompt));
  EXPECT_FALSE(StartsWith(next.token_ids, first_answer));
}

TEST_F(PromptBuilderTest, OldestTurnsAreLeftOutAndCounted) {
  FakeChat chat = Chat(*plain_);
  chat.SetSystem("sys");
  for (const char* message : {"first message here", "second message here", "third message here"}) {
    ASSERT_FALSE(chat.Ask(message).token_ids.empty());
    chat.Answer({eos_}, "");
  }
  const int64_t limit = chat.num_tokens();
  const BuiltPrompt next = chat.Ask("fourth message here", limit);
  EXPECT_LE(static_cast<int64_t>(next.token_ids.size()), limit);
  EXPECT_GE(next.num_dropped_turns, 1);
  const std::string text = Text(next.token_ids);
  EXPECT_EQ(text.find("first"), std::string::npos);
  EXPECT_NE(text.find("sys"), std::string::npos);
  EXPECT_NE(text.find("fourth"), std::string::npos);
  // The turns that were left out stay left out.
  chat.Answer({eos_}, "");
  const Ids history = chat.ids();
  EXPECT_TRUE(StartsWith(chat.Ask("fifth").token_ids, history));
}

TEST_F(PromptBuilderTest, FullContextIsCutToAboutHalfSoThatMostTurnsExtendTheLastPrompt) {
  FakeChat chat = Chat(*plain_);
  chat.SetSystem("sys");
  constexpr int64_t kLimit = 400;
  Ids history;
  int num_full = 0;
  int num_extended = 0;
  for (int i = 0; i < 60; ++i) {
    const BuiltPrompt next = chat.Ask("message number " + std::to_string(i), kLimit);
    const auto size = static_cast<int64_t>(next.token_ids.size());
    ASSERT_GT(size, 0);
    ASSERT_LE(size, kLimit);
    EXPECT_NE(Text(next.token_ids).find("sys"), std::string::npos);
    if (next.num_dropped_turns > 0) {
      ++num_full;
      EXPECT_LE(size, kLimit * 6 / 10) << i;
      EXPECT_GE(size, kLimit * 4 / 10) << i;
    }
    if (num_full > 0 && StartsWith(next.token_ids, history)) ++num_extended;
    Ids answer = Encode("an answer");
    answer.push_back(eos_);
    chat.Answer(answer, "an answer");
    history = chat.ids();
  }
  EXPECT_GE(num_full, 3);
  EXPECT_GT(num_extended, 3 * num_full);
}

TEST_F(PromptBuilderTest, WithoutContextShiftAFullContextHasNoPrompt) {
  FakeChat chat = Chat(*plain_);
  chat.SetSystem("sys");
  for (const char* message : {"first message here", "second message here"}) {
    ASSERT_FALSE(chat.Ask(message).token_ids.empty());
    chat.Answer({eos_}, "");
  }
  const BuiltPrompt whole = chat.Build("third message here");
  const auto size = static_cast<int64_t>(whole.token_ids.size());
  EXPECT_EQ(chat.Build("third message here", size, ContextShift::kOff).token_ids, whole.token_ids);
  const BuiltPrompt none = chat.Build("third message here", size - 1, ContextShift::kOff);
  EXPECT_TRUE(none.token_ids.empty());
  EXPECT_EQ(none.num_tokens_needed, size);
  // A message that does not fit even alone is another case.
  EXPECT_EQ(chat.Build(std::string(2000, 'x'), size, ContextShift::kOff).num_tokens_needed, 0);
}

TEST_F(PromptBuilderTest, TheSystemMessageIsTheBeginningOfThePromptBeforeAndAfterACut) {
  FakeChat chat = Chat(*plain_);
  chat.SetSystem("a system message of several words");
  const Ids system = Encode("system: a system message of several words</s>");
  int num_cuts = 0;
  for (int i = 0; i < 20; ++i) {
    const BuiltPrompt prompt = chat.Ask("message number " + std::to_string(i), 200);
    num_cuts += prompt.num_dropped_turns > 0 ? 1 : 0;
    EXPECT_TRUE(StartsWith(prompt.token_ids, system)) << i;
    chat.Answer({eos_}, "");
  }
  EXPECT_GE(num_cuts, 2);
}

TEST_F(PromptBuilderTest, TurnsOutsideTheContextAreCountedAlsoWhereABranchLeavesFewerOut) {
  FakeChat chat = Chat(*plain_);
  EXPECT_EQ(NumDroppedTurns(chat.tree().PathTo(0)), 0);
  int64_t num_dropped = 0;
  for (int i = 0; i < 20; ++i) {
    const int64_t before = chat.tree().current_id();
    num_dropped += chat.Ask("message number " + std::to_string(i), 200).num_dropped_turns;
    EXPECT_EQ(NumDroppedTurns(chat.tree().PathTo(chat.tree().current_id())), num_dropped) << i;
    chat.Answer({eos_}, "");
    EXPECT_EQ(NumDroppedTurns(chat.tree().PathTo(chat.tree().current_id())), num_dropped) << i;
    EXPECT_LE(NumDroppedTurns(chat.tree().PathTo(before)), num_dropped) << i;
  }
  EXPECT_GT(num_dropped, 5);
}

TEST_F(PromptBuilderTest, LongMessageKeepsSomeHistory) {
  FakeChat chat = Chat(*plain_);
  for (int i = 0; i < 10; ++i) {
    ASSERT_FALSE(chat.Ask("message number " + std::to_string(i)).token_ids.empty());
    chat.Answer({eos_}, "");
  }
  const int64_t limit = chat.num_tokens();
  const std::string message(static_cast<size_t>(limit * 6 / 10), 'x');
  const BuiltPrompt next = chat.Ask(message, limit);
  EXPECT_LE(static_cast<int64_t>(next.token_ids.size()), limit);
  EXPECT_GT(next.num_dropped_turns, 0);
  EXPECT_LT(next.num_dropped_turns, 10);
}

TEST_F(PromptBuilderTest, MessageThatDoesNotFitHasNoPrompt) {
  FakeChat chat = Chat(*plain_);
  EXPECT_TRUE(chat.Ask(std::string(2000, 'x'), 100).token_ids.empty());
  chat.Ask("one");
  chat.Answer({eos_}, "");
  EXPECT_TRUE(chat.Ask(std::string(2000, 'x'), 100).token_ids.empty());
}

TEST_F(PromptBuilderTest, ImportedMessagesAreEncodedFromTheirText) {
  FakeChat chat = Chat(*plain_);
  StoredMessage question;
  question.text = "one";
  question.parent = 0;
  StoredMessage answer;
  answer.role = ChatRole::kAssistant;
  answer.text = "two";
  answer.parent = chat.tree().Add(question);
  chat.tree().Add(answer);
  const BuiltPrompt next = chat.Ask("three");
  EXPECT_EQ(next.token_ids, Encode("user: one</s>\nassistant: two</s>\nuser: three</s>\nassistant: "));
}

}  // namespace
}  // namespace vllm::app
