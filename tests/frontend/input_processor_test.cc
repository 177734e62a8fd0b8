#include "engine/frontend/input_processor.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "engine/request/request.h"
#include "tests/engine/fake_executor.h"
#include "tests/frontend/byte_tokenizer.h"

namespace vllm {
namespace {

using testing::Bytes;
using testing::kBos;
using testing::kEos;
using testing::kWord;

class InputProcessorTest : public ::testing::Test {
 protected:
  InputProcessorTest() {
    config_.model.eos_token_ids = {kEos, kWord};
    params_.temperature = 0.0;
  }
  ProcessedInput Process(const Prompt& prompt) const {
    return InputProcessor(config_, 64, with_tokenizer_ ? tokenizer_.get() : nullptr).Process("id", prompt, params_);
  }
  std::string Rejection(const Prompt& prompt) const {
    try {
      Process(prompt);
    } catch (const RequestError& error) {
      return error.what();
    }
    return "accepted";
  }

  std::unique_ptr<tokenizer::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
  bool with_tokenizer_ = true;
  VllmConfig config_ = testing::FakeConfig();
  SamplingParams params_;
};

TEST_F(InputProcessorTest, TextIsTokenizedWithOrWithoutSpecialTokens) {
  EXPECT_EQ(Process(TextPrompt{"hi", true}).prompt_token_ids, (std::vector<int32_t>{kBos, 'h', 'i'}));
  EXPECT_EQ(Process(TextPrompt{"hi", false}).prompt_token_ids, Bytes("hi"));
}

TEST_F(InputProcessorTest, EmptyTextIsAcceptedIfSpecialTokensAreAdded) {
  EXPECT_EQ(Process(TextPrompt{"", true}).prompt_token_ids, std::vector<int32_t>{kBos});
  EXPECT_EQ(Rejection(TextPrompt{"", false}), "prompt: must have at least one token");
  EXPECT_EQ(Rejection(std::vector<int32_t>{}), "prompt: must have at least one token");
}

TEST_F(InputProcessorTest, IdsMustBeInTheVocabulary) {
  EXPECT_EQ(Rejection(std::vector<int32_t>{1, 259}),
            "prompt_token_ids: token id outside the vocabulary (259 tokens; id 259)");
  EXPECT_EQ(Rejection(std::vector<int32_t>{-1}),
            "prompt_token_ids: token id outside the vocabulary (259 tokens; id -1)");
}

TEST_F(InputProcessorTest, PromptMustLeaveSpaceForOneToken) {
  EXPECT_EQ(Process(std::vector<int32_t>(63, 1)).params.max_tokens, 1);
  EXPECT_EQ(Rejection(std::vector<int32_t>(64, 1)), "prompt is 64 tokens, limit 63");
}

TEST_F(InputProcessorTest, MaxTokensIsLimitedToWhatFits) {
  EXPECT_EQ(Process(std::vector<int32_t>(10, 1)).params.max_tokens, 54);
  params_.max_tokens = 5;
  EXPECT_EQ(Process(std::vector<int32_t>(10, 1)).params.max_tokens, 5);
  params_.max_tokens = 60;
  EXPECT_EQ(Process(std::vector<int32_t>(10, 1)).params.max_tokens, 54);
}

TEST_F(InputProcessorTest, MinTokensIsLimitedToMaxTokens) {
  params_.min_tokens = 60;
  const auto input = Process(std::vector<int32_t>(10, 1));
  EXPECT_EQ(input.params.min_tokens, input.params.max_tokens);
}

TEST_F(InputProcessorTest, FirstEosIdIsTheEosTokenAndTheOthersAreStopTokenIds) {
  params_.stop_token_ids = {7};
  const auto input = Process(Bytes("x"));
  EXPECT_EQ(input.params.eos_token_id, kEos);
  EXPECT_EQ(input.params.stop_token_ids, (std::vector<int32_t>{7, kWord}));
}

TEST_F(InputProcessorTest, IgnoreEosDropsTheModelsOtherEosIdsToo) {
  params_.ignore_eos = true;
  EXPECT_TRUE(Process(Bytes("x")).params.stop_token_ids.empty());
}

TEST_F(InputProcessorTest, EosIdsOutsideTheVocabularyAreDropped) {
  config_.model.eos_token_ids = {5000, kEos};
  EXPECT_EQ(Process(Bytes("x")).params.eos_token_id, kEos);
}

TEST_F(InputProcessorTest, LeadingSpaceFormOfABadWordIsDroppedIfItsTokenCountDiffers) {
  // "word" is four tokens and " word" is one. Because the counts differ, only "word" is banned. "  x" is trimmed to
  // "x".
  params_.bad_words = {"word", "  x"};
  const auto ids = Process(Bytes("a")).params.bad_words_token_ids;
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], Bytes("word"));
  EXPECT_EQ(ids[1], Bytes("x"));
}

TEST_F(InputProcessorTest, BlankBadWordIsRejected) {
  params_.bad_words = {" "};
  EXPECT_EQ(Rejection(Bytes("a")), "bad_words: a word has too few tokens (0)");
}

TEST_F(InputProcessorTest, WithoutATokenizerOnlyTokenIdsAreAccepted) {
  with_tokenizer_ = false;
  EXPECT_FALSE(Process(Bytes("a")).params.detokenize);
  EXPECT_EQ(Rejection(TextPrompt{"a"}), "prompt: text needs a tokenizer (none is loaded)");
  params_.stop = {"x"};
  EXPECT_EQ(Rejection(Bytes("a")), "stop: stop strings need a tokenizer (none is loaded)");
  params_.stop.clear();
  params_.bad_words = {"x"};
  EXPECT_EQ(Rejection(Bytes("a")), "bad_words: words need a tokenizer (none is loaded)");
}

TEST_F(InputProcessorTest, StopStringOfInvalidUtf8IsRejected) {
  params_.stop = {"ok", "\xFF"};
  EXPECT_NE(Rejection(Bytes("a")), "accepted");
}

TEST_F(InputProcessorTest, MissingSeedIsDerivedFromTheRequestIdAndTheEnginesSeed) {
  EXPECT_EQ(Process(Bytes("a")).params.seed, DeriveSeed(0, "id"));
  EXPECT_NE(DeriveSeed(0, "id"), DeriveSeed(0, "ie"));
  EXPECT_NE(DeriveSeed(0, "id"), DeriveSeed(1, "id"));
  // The expected value was computed in Python. Another hash would change the sampled tokens of requests without a seed.
  EXPECT_EQ(DeriveSeed(0, "row-1"), 120240866209981125uLL);
  params_.seed = 9;
  EXPECT_EQ(Process(Bytes("a")).params.seed, 9u);
}

TEST_F(InputProcessorTest, PromptLogprobsTurnOffReadingThePrefixCache) {
  const auto reads = [&] {
    auto core = std::make_shared<EngineCoreRequest>();
    ProcessedInput input = Process(Bytes("a"));
    core->prompt_token_ids = std::move(input.prompt_token_ids);
    core->sampling_params = std::move(input.params);
    return Request(core).reads_prefix_cache();
  };
  EXPECT_TRUE(reads());
  params_.prompt_logprobs = 0;
  EXPECT_FALSE(reads());
}

TEST_F(InputProcessorTest, EosIdsOfTheModelDoNotCountAgainstTheLimitOfStopTokenIds) {
  params_.stop_token_ids.assign(Limits::kMaxStopTokenIds, 7);
  EXPECT_EQ(Process(Bytes("a")).params.stop_token_ids.size(), Limits::kMaxStopTokenIds + 1);
}

TEST_F(InputProcessorTest, SeedOfMinusOneIsReplacedByADerivedSeed) {
  params_.seed = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(Process(Bytes("a")).params.seed, DeriveSeed(0, "id"));
}

TEST_F(InputProcessorTest, ParametersAreChecked) {
  params_.top_p = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Rejection(Bytes("a")).rfind("top_p: ", 0), 0u);
}

TEST_F(InputProcessorTest, OutputThatMayNeedTooMuchMemoryIsRejected) {
  params_.max_tokens = 50;
  params_.logprobs = 20;
  const std::vector<int32_t> prompt(10, 1);
  const auto process = [&](int64_t limit) {
    InputProcessor(config_, 64, nullptr, limit).Process("id", prompt, params_);
  };
  EXPECT_NO_THROW(process(1 << 20));
  EXPECT_THROW(process(1 << 10), RequestError);
  // max_tokens counts only up to what fits into max_model_len.
  params_.max_tokens = 1 << 30;
  EXPECT_NO_THROW(process(1 << 20));
}

}  // namespace
}  // namespace vllm
