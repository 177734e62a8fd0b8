// Tests the prompts after answers that begin with a thought. The expected prompt is the text that the chat template
// writes for the messages, no matter which part of it was kept as sampled ids.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "engine/reasoning/thinking_tracker.h"
#include "tests/chats/fake_chat.h"
#include "tests/frontend/byte_tokenizer.h"
#include "tests/jinja/real_templates.h"
#include "tests/support/thinking_model.h"

namespace vllm::app {
namespace {

using testing_support::kEndThinkId;
using testing_support::kThinkId;

constexpr int32_t kEosId = 2;

// A template that writes the thoughts of all turns.
constexpr char kKeepingTemplate[] =
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}</s>"
    "{% else %}<|{{ m.role }}|>{{ m.content }}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n<think>{% endif %}";

class ThinkingPromptTest : public ::testing::Test {
 protected:
  FakeChat Chat(const PromptRenderer& renderer) { return FakeChat(renderer, *tokenizer_, kEosId); }
  Ids Encode(const std::string& text) const { return tokenizer_->Encode(text, false); }
  // The ids of text after a line break, where the tokenizer adds no space.
  Ids EncodeAfterBreak(const std::string& text) const {
    const Ids before = Encode("x\n");
    const Ids all = Encode("x\n" + text);
    EXPECT_TRUE(StartsWith(all, before));
    return {all.begin() + static_cast<std::ptrdiff_t>(before.size()), all.end()};
  }
  // The ids of an answer: a thought, its end and the text.
  Ids Thought(const std::string& thought, const std::string& text) const {
    Ids ids = Encode(thought);
    ids.push_back(kEndThinkId);
    const Ids answer = EncodeAfterBreak(text);
    ids.insert(ids.end(), answer.begin(), answer.end());
    ids.push_back(kEosId);
    return ids;
  }
  static int64_t Count(const Ids& ids, int32_t id) { return std::count(ids.begin(), ids.end(), id); }

  std::shared_ptr<const tokenizer::Tokenizer> tokenizer_ = testing_support::ThinkingTokenizer();
  std::unique_ptr<PromptRenderer> strips_ = Renderer(testing_support::kThinkTemplate);
  std::unique_ptr<PromptRenderer> keeps_ = Renderer(kKeepingTemplate);
};

TEST_F(ThinkingPromptTest, ThoughtsOfEarlierTurnsAreLeftOut) {
  FakeChat chat = Chat(*strips_);
  chat.Ask("one two three");
  const Ids first_prompt = chat.ids();
  const Ids thought = Encode("let me see");
  chat.Answer(Thought("let me see", "the first answer"), "the first answer", static_cast<int64_t>(thought.size()) + 1,
              "let me see");
  const BuiltPrompt second = chat.Ask("four five six");
  EXPECT_EQ(second.rewrite, BuiltPrompt::Rewrite::kNone);
  EXPECT_EQ(second.token_ids,
            Encode(strips_->Render(
                std::vector<tokenizer::ChatMessage>{
                    {"user", "one two three"}, {"assistant", "the first answer"}, {"user", "four five six"}},
                true)));
  // Only the generation prompt of the first question is read again: <|assistant|>, a line break, <think>, a line break.
  EXPECT_GE(second.ids_begin, static_cast<int64_t>(first_prompt.size()) - 6);
  EXPECT_TRUE(StartsWith(first_prompt, Ids(second.token_ids.begin(), second.token_ids.begin() + second.ids_begin)));
  // The third turn continues the second one in the same way.
  chat.Answer(Thought("hm", "another one"), "another one", static_cast<int64_t>(Encode("hm").size()) + 1, "hm");
  const Ids before(second.token_ids.begin(), second.token_ids.end() - 6);
  const BuiltPrompt third = chat.Ask("seven");
  EXPECT_EQ(third.rewrite, BuiltPrompt::Rewrite::kNone);
  EXPECT_TRUE(StartsWith(third.token_ids, before));
  EXPECT_EQ(Count(third.token_ids, kThinkId), 1) << "only that of the generation prompt";
  EXPECT_EQ(Count(third.token_ids, kEndThinkId), 0);
}

TEST_F(ThinkingPromptTest, SampledIdsOfTheAnswerStay) {
  FakeChat chat = Chat(*strips_);
  chat.Ask("one");
  Ids answer = Encode("well");
  answer.push_back(kEndThinkId);
  const auto num_thinking_ids = static_cast<int64_t>(answer.size());
  // White space before the answer, and then ids that the tokenizer would not choose for "hi".
  answer.push_back(tokenizer_->TokenToId("<0x0A>").value());
  const Ids bytes = {tokenizer_->TokenToId("<0x68>").value(), tokenizer_->TokenToId("<0x69>").value()};
  answer.insert(answer.end(), bytes.begin(), bytes.end());
  answer.push_back(kEosId);
  chat.Answer(answer, "hi", num_thinking_ids, "well");
  const BuiltPrompt next = chat.Ask("two");
  EXPECT_NE(std::search(next.token_ids.begin(), next.token_ids.end(), bytes.begin(), bytes.end()),
            next.token_ids.end());
  EXPECT_EQ(tokenizer_->Decode(next.token_ids, false),
            tokenizer_->Decode(
                Encode(strips_->Render(
                    std::vector<tokenizer::ChatMessage>{{"user", "one"}, {"assistant", "hi"}, {"user", "two"}}, true)),
                false));
}

TEST_F(ThinkingPromptTest, HalfAThoughtIsNeverSent) {
  for (const PromptRenderer* renderer : {strips_.get(), keeps_.get()}) {
    FakeChat chat = Chat(*renderer);
    chat.Ask("one");
    const Ids half = Encode("let me");
    chat.Answer(half, "", static_cast<int64_t>(half.size()), "let me");
    const BuiltPrompt next = chat.Ask("two");
    EXPECT_EQ(Count(next.token_ids, kThinkId), 1) << "only that of the generation prompt";
    EXPECT_EQ(next.token_ids.back() == kThinkId || next.token_ids[next.token_ids.size() - 3] == kThinkId ||
                  next.token_ids[next.token_ids.size() - 2] == kThinkId,
              true);
    EXPECT_EQ(next.token_ids,
              Encode(renderer->Render(
                  std::vector<tokenizer::ChatMessage>{{"user", "one"}, {"assistant", ""}, {"user", "two"}}, true)));
  }
}

TEST_F(ThinkingPromptTest, TemplateThatKeepsThoughtsExtendsTheHistory) {
  FakeChat chat = Chat(*keeps_);
  chat.Ask("one");
  const Ids thought = Encode("let me see");
  chat.Answer(Thought("let me see", "the answer"), "the answer", static_cast<int64_t>(thought.size()) + 1,
              "let me see");
  const Ids history = chat.ids();
  const BuiltPrompt next = chat.Ask("two");
  EXPECT_EQ(next.rewrite, BuiltPrompt::Rewrite::kNone);
  EXPECT_TRUE(StartsWith(next.token_ids, history));
}

TEST_F(ThinkingPromptTest, ThinkingThatIsSwitchedOffLeavesNoMarkerInTheHistory) {
  strips_->SetThinkVariables("{\"enable_thinking\":false}");
  FakeChat chat = Chat(*strips_);
  chat.Ask("one");
  Ids answer = EncodeAfterBreak("the answer");
  answer.push_back(kEosId);
  chat.Answer(answer, "the answer");
  const BuiltPrompt next = chat.Ask("two");
  EXPECT_EQ(next.rewrite, BuiltPrompt::Rewrite::kNone);
  EXPECT_GT(next.ids_begin, 0);
  EXPECT_EQ(
      next.token_ids,
      Encode(strips_->Render(
          std::vector<tokenizer::ChatMessage>{{"user", "one"}, {"assistant", "the answer"}, {"user", "two"}}, true)));
}

TEST_F(ThinkingPromptTest, OtherTemplateVariablesRenderTheHistoryAgainOnce) {
  FakeChat chat = Chat(*strips_);
  chat.Ask("one");
  chat.Answer(Thought("hm", "yes"), "yes", static_cast<int64_t>(Encode("hm").size()) + 1, "hm");
  strips_->SetThinkVariables("{\"enable_thinking\":false}");
  EXPECT_EQ(chat.Ask("two").rewrite, BuiltPrompt::Rewrite::kOtherVariables);
  chat.Answer({kEosId}, "");
  EXPECT_EQ(chat.Ask("three").rewrite, BuiltPrompt::Rewrite::kNone);
}

// The prompts of three turns are the text that real templates write.
TEST(RealThinkingTemplateTest, PromptsAreWhatTheTemplateSays) {
  const std::string directory = "chat-templates/llama.cpp/";
  if (!tokenizer::HasRealTemplates()) GTEST_SKIP() << "reference data not found: chat-templates";
  const std::vector<vllm::testing::AddedToken> tokens = {
      {"<think>", false}, {"</think>", false}, {"<|im_start|>"},          {"<|im_end|>"},
      {"<｜User｜>"},     {"<｜Assistant｜>"}, {"<｜end▁of▁sentence｜>"}, {"<|start|>"},
      {"<|end|>"},        {"<|channel|>"},     {"<|message|>"},           {"<|return|>"}};
  const std::shared_ptr<const tokenizer::Tokenizer> tokenizer = vllm::testing::MakeByteTokenizer(tokens);
  for (const std::string name :
       {"Qwen-Qwen3-0.6B.jinja", "Qwen-QwQ-32B.jinja", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja",
        "HuggingFaceTB-SmolLM3-3B.jinja", "LFM2.5-Instruct.jinja", "openai-gpt-oss-120b.jinja"}) {
    SCOPED_TRACE(name);
    const auto renderer = Renderer(tokenizer::RealTemplateText(directory + name));
    const auto format = DetectReasoningFormat(renderer->source().text, tokenizer);
    ASSERT_NE(format, nullptr);
    const int32_t eos = tokenizer
                            ->TokenToId(name.starts_with("deepseek") ? "<｜end▁of▁sentence｜>"
                                        : name.starts_with("openai") ? "<|return|>"
                                                                     : "<|im_end|>")
                            .value();
    FakeChat chat(*renderer, *tokenizer, eos);
    std::vector<tokenizer::ChatMessage> messages;
    for (const std::string question : {"one", "two", "three"}) {
      const Ids history = chat.ids();
      const BuiltPrompt prompt = chat.Ask(question, 100000);
      messages.push_back({"user", question});
      EXPECT_EQ(tokenizer->Decode(prompt.token_ids, false), renderer->Render(messages, true));
      EXPECT_EQ(prompt.rewrite, BuiltPrompt::Rewrite::kNone);
      if (messages.size() > 1) {
        // At most the generation prompt is dropped from what the last prompt had.
        const auto common =
            std::mismatch(prompt.token_ids.begin(), prompt.token_ids.end(), history.begin(), history.end());
        EXPECT_GE(common.first - prompt.token_ids.begin(), prompt.ids_begin);
        EXPECT_GT(prompt.ids_begin, 0);
      }
      // A thought as this family writes it, unless the prompt has closed it.
      ThinkingTracker tracker(format, prompt.token_ids);
      const bool is_harmony = format->kind == ReasoningFormat::Kind::kHarmony;
      std::string thought = is_harmony              ? "<|channel|>analysis<|message|>hm"
                            : tracker.is_thinking() ? "hm"
                                                    : "<think>\nhm";
      thought += is_harmony ? "<|end|><|start|>assistant<|channel|>final<|message|>" : "\n</think>\n\n";
      const std::string answer = "answer to " + question;
      Ids ids = tokenizer->Encode(thought, false);
      // White space between the thought and the answer is not part of the thought.
      while (ids.back() == '\n') ids.pop_back();
      const auto num_thinking_ids = static_cast<int64_t>(ids.size());
      const Ids rest = tokenizer->Encode(is_harmony ? answer : "\n\n" + answer, false);
      ids.insert(ids.end(), rest.begin(), rest.end());
      ids.push_back(eos);
      chat.Answer(ids, answer, num_thinking_ids, "hm");
      messages.push_back({"assistant", answer});
    }
  }
}

}  // namespace
}  // namespace vllm::app
