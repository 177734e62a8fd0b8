// Tests ReasoningSplitter: any split of an output into calls gives the parts of the whole output.
#include "engine/reasoning/reasoning_splitter.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/frontend/byte_tokenizer.h"
#include "tests/support/thinking_model.h"

namespace vllm {
namespace {

using testing::AddedToken;
using testing::Bytes;
using testing::kEos;

using Ids = std::vector<int32_t>;

constexpr int32_t kStart = 259;
constexpr int32_t kEnd = 260;

Ids operator+(Ids a, const Ids& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Case {
  std::shared_ptr<const ReasoningFormat> format;
  Ids prompt;
  Ids output;
};

// The texts that the engine would return after each token, and at the end.
std::vector<std::string> Texts(const Case& c) {
  std::vector<std::string> texts;
  tokenizer::DecodeStream stream(*c.format->tokenizer, true);
  stream.Prime(c.prompt);
  for (const int32_t id : c.output) stream.Feed(id, texts.emplace_back());
  stream.Flush(texts.emplace_back());
  return texts;
}

ReasoningParts Whole(const Case& c) {
  std::string text;
  for (const std::string& part : Texts(c)) text += part;
  return SplitReasoning(c.format, c.prompt, true, c.output, text);
}

// Splits the output into random calls. The text lags behind the tokens, as with stop strings.
void ExpectSameInPieces(const Case& c) {
  const ReasoningParts whole = Whole(c);
  std::mt19937 random(1);
  for (int trial = 0; trial < 50; ++trial) {
    const std::vector<std::string> texts = Texts(c);
    ReasoningSplitter splitter(c.format, c.prompt, true);
    ReasoningParts parts;
    std::string waiting;
    size_t next = 0;
    while (next < c.output.size()) {
      const size_t count = std::min(c.output.size() - next, size_t{1} + random() % 4);
      for (size_t i = 0; i < count; ++i) waiting += texts[next + i];
      size_t size = random() % (waiting.size() + 1);
      while (size < waiting.size() && (static_cast<unsigned char>(waiting[size]) & 0xC0) == 0x80) ++size;
      splitter.Feed(std::span(c.output).subspan(next, count), waiting.substr(0, size), false, parts);
      waiting.erase(0, size);
      next += count;
    }
    splitter.Feed({}, waiting + texts.back(), true, parts);
    EXPECT_EQ(parts.reasoning, whole.reasoning);
    EXPECT_EQ(parts.text, whole.text);
    EXPECT_EQ(parts.reasoning_token_ids, whole.reasoning_token_ids);
    EXPECT_EQ(parts.token_ids, whole.token_ids);
  }
}

std::shared_ptr<const ReasoningFormat> Format(const std::string& family, const std::vector<AddedToken>& tokens) {
  return MakeReasoningFormat(*FindReasoningFamily(family), false, testing::MakeByteTokenizer(tokens));
}

class ThinkTagTest : public ::testing::TestWithParam<bool> {
 protected:
  Case Make(const Ids& output, const Ids& prompt = {}) const {
    return {Format("qwen3", {{"<think>", GetParam()}, {"</think>", GetParam()}}), Bytes("hello") + Ids{kEos} + prompt,
            output};
  }
};

INSTANTIATE_TEST_SUITE_P(SpecialOrNot, ThinkTagTest, ::testing::Bool());

TEST_P(ThinkTagTest, ThoughtAndAnswerAreSeparated) {
  const Case c = Make(Ids{kStart} + Bytes("\nWell, \xc3\xa9.\n") + Ids{kEnd} + Bytes("\n\nAn answer. \n"));
  const ReasoningParts parts = Whole(c);
  EXPECT_EQ(parts.reasoning, "Well, \xc3\xa9.");
  EXPECT_EQ(parts.text, "An answer. \n");
  EXPECT_EQ(parts.reasoning_token_ids, Ids{kStart} + Bytes("\nWell, \xc3\xa9.\n") + Ids{kEnd});
  EXPECT_EQ(parts.token_ids, Bytes("\n\nAn answer. \n"));
  ExpectSameInPieces(c);
}

TEST_P(ThinkTagTest, OutputWithoutAThoughtIsUnchanged) {
  const Case c = Make(Bytes("\n\n An answer with <think> and </think>"));
  EXPECT_EQ(Whole(c).text, "\n\n An answer with <think> and </think>");
  EXPECT_EQ(Whole(c).reasoning, "");
  EXPECT_EQ(Whole(c).token_ids, c.output);
  ExpectSameInPieces(c);
}

TEST_P(ThinkTagTest, MarkersWrittenWithOtherTokensAreText) {
  const Case c = Make(Ids{kStart} + Bytes("the tag </think> ends it") + Ids{kEnd} + Bytes("A"));
  EXPECT_EQ(Whole(c).reasoning, "the tag </think> ends it");
  EXPECT_EQ(Whole(c).text, "A");
  ExpectSameInPieces(c);
}

TEST_P(ThinkTagTest, ThoughtThatThePromptOpensMayRepeatTheMarker) {
  const Case c = Make(Ids{kStart} + Bytes("x") + Ids{kEnd} + Bytes("A"), Ids{kStart, '\n'});
  EXPECT_EQ(Whole(c).reasoning, "x");
  EXPECT_EQ(Whole(c).text, "A");
  ExpectSameInPieces(c);
}

TEST_P(ThinkTagTest, UnfinishedThoughtHasNoAnswer) {
  const Case c = Make(Ids{kStart} + Bytes("half a thou"));
  EXPECT_EQ(Whole(c).reasoning, "half a thou");
  EXPECT_EQ(Whole(c).text, "");
  EXPECT_EQ(Whole(c).token_ids, Ids{});
  ExpectSameInPieces(c);
}

TEST_P(ThinkTagTest, IncompleteCharacterStaysOnItsSide) {
  const Case c = Make(Ids{kStart} + Bytes("ab\xf0\x9f") + Ids{kEnd} + Bytes("A\xf0\x9f"));
  EXPECT_EQ(Whole(c).reasoning.substr(0, 2), "ab");
  EXPECT_EQ(Whole(c).text.front(), 'A');
  ExpectSameInPieces(c);
}

TEST_P(ThinkTagTest, EmptyThoughtIsNoThought) {
  const Case c = Make(Ids{kStart} + Bytes("\n\n") + Ids{kEnd} + Bytes("\n\nA"));
  EXPECT_EQ(Whole(c).reasoning, "");
  EXPECT_EQ(Whole(c).text, "A");
  ExpectSameInPieces(c);
}

TEST(ReasoningSplitterTest, TextMarkersAreFoundAcrossTokens) {
  const Case c{Format("granite", {}), Bytes("q") + Ids{kEos},
               Bytes("Here's my thought process: I think.\nHere is my response: Yes. Here is my")};
  EXPECT_EQ(Whole(c).reasoning, "I think.");
  EXPECT_EQ(Whole(c).text, "Yes. Here is my");
  ExpectSameInPieces(c);
}

TEST(ReasoningSplitterTest, TextThatBeginsLikeAMarkerIsKept) {
  const Case c{Format("granite", {}), Bytes("q") + Ids{kEos}, Bytes(" Here is my thought pro")};
  EXPECT_EQ(Whole(c).text, " Here is my thought pro");
  ExpectSameInPieces(c);
}

TEST(ReasoningSplitterTest, WrapperOfTheAnswerIsLeftOut) {
  const Case c{Format("hunyuan_a13b", {{"<think>", false}, {"</think>", false}}), Bytes("q") + Ids{kEos},
               Ids{kStart} + Bytes("\nhm\n") + Ids{kEnd} + Bytes("\n<answer>\nYes < 3 </answers>\n</answer>")};
  EXPECT_EQ(Whole(c).text, "Yes < 3 </answers>\n");
  ExpectSameInPieces(c);
}

TEST(ReasoningSplitterTest, GemmaLabelIsLeftOut) {
  const Case c{Format("gemma4", {{"<|channel>"}, {"<channel|>"}}), Bytes("q") + Ids{kEos},
               Ids{kStart} + Bytes("thought\nthoughts\n") + Ids{kEnd} + Bytes("Yes")};
  EXPECT_EQ(Whole(c).reasoning, "thoughts");
  EXPECT_EQ(Whole(c).text, "Yes");
  ExpectSameInPieces(c);
}

TEST(ReasoningSplitterTest, HarmonyHeadersAreLeftOut) {
  const auto format = Format("gpt_oss", {{"<|channel|>"}, {"<|message|>"}, {"<|start|>"}, {"<|end|>"}});
  const auto message = [](const std::string& channel, const std::string& text) {
    return Ids{259} + Bytes(channel) + Ids{260} + Bytes(text);
  };
  const Ids next = Ids{262, 261} + Bytes("assistant");
  const Case c{format, Bytes("q") + Ids{262, 261} + Bytes("assistant"),
               message("analysis", "one") + next + message("analysis", "two") + next + message("final", "Yes.")};
  EXPECT_EQ(Whole(c).reasoning, "one\ntwo");
  EXPECT_EQ(Whole(c).text, "Yes.");
  EXPECT_EQ(Whole(c).token_ids, Bytes("Yes."));
  ExpectSameInPieces(c);
}

TEST(ReasoningSplitterTest, HarmonyHeadersAreKeptForTheParserOfToolCalls) {
  const auto format = Format("gpt_oss", {{"<|channel|>"}, {"<|message|>"}, {"<|start|>"}, {"<|end|>"}});
  const Ids output = Ids{259} + Bytes("analysis") + Ids{260} + Bytes("one") + Ids{262, 261} + Bytes("assistant") +
                     Ids{259} + Bytes("commentary to=functions.f") + Ids{260} + Bytes("{}");
  const std::string text = format->tokenizer->Decode(output, false);
  const ReasoningParts parts = SplitReasoning(format, Bytes("q") + Ids{262, 261} + Bytes("assistant"), false, output,
                                              text, /*keeps_markers=*/true);
  EXPECT_EQ(parts.reasoning, "one");
  EXPECT_EQ(parts.text,
            "<|channel|>analysis<|message|><|end|><|start|>assistant<|channel|>commentary to=functions.f<|message|>{}");
}

TEST(ReasoningSplitterTest, ByteFallbackTokensBeforeAMarkerBelongToTheThought) {
  const auto tokenizer = testing_support::ThinkingTokenizer();
  const auto format = DetectReasoningFormat("", tokenizer);
  const Ids cat = tokenizer->Encode("a \xf0\x9f\x90\x88", false);
  const Case c{format, tokenizer->Encode("hi", true),
               Ids{format->start_id} + cat + Ids{format->end_id} + tokenizer->Encode("so \xf0\x9f\x90\x88", false)};
  EXPECT_EQ(Whole(c).reasoning, "a \xf0\x9f\x90\x88");
  EXPECT_EQ(Whole(c).text, "so \xf0\x9f\x90\x88");
  ExpectSameInPieces(c);
}

}  // namespace
}  // namespace vllm
