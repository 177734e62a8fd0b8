#include "engine/frontend/output_memory.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/config/errors.h"

namespace vllm {
namespace {

constexpr int64_t kVocabSize = 1000;
constexpr int64_t kGiB = int64_t{1} << 30;

SamplingParams Params(int64_t n, int64_t max_tokens, std::optional<int64_t> logprobs = {}) {
  SamplingParams params;
  params.n = n;
  params.max_tokens = max_tokens;
  params.logprobs = logprobs;
  return params;
}

int64_t Total(const SamplingParams& params, int64_t num_prompt_tokens = 10) {
  return EstimateOutputMemory(params, num_prompt_tokens, kVocabSize).total_bytes();
}

TEST(OutputMemoryTest, EachFactorOfARequestCounts) {
  const int64_t one = Total(Params(1, 100, 5));
  EXPECT_GT(one, 100 * 6 * 8);
  EXPECT_GT(Total(Params(2, 100, 5)), 2 * one - one / 10);
  EXPECT_GT(Total(Params(1, 200, 5)), 2 * one - one / 10);
  EXPECT_GT(Total(Params(1, 100, 10)), one);
  EXPECT_GT(Total(Params(1, 100, 5), 1000), one);
  EXPECT_LT(Total(Params(1, 100)), one);
  SamplingParams prompt = Params(1, 100, 5);
  prompt.prompt_logprobs = 5;
  EXPECT_GT(Total(prompt, 1000), Total(Params(1, 100, 5), 1000) + 1000 * 6 * 8);
}

TEST(OutputMemoryTest, MinusOneMeansTheWholeVocabulary) {
  EXPECT_EQ(Total(Params(1, 100, -1)), Total(Params(1, 100, kVocabSize)));
  EXPECT_GT(Total(Params(1, 100, -1)), 100 * kVocabSize * 8);
}

TEST(OutputMemoryTest, OneSequenceWithoutLogprobsHoldsOnlyItsTokens) {
  const OutputMemory memory = EstimateOutputMemory(Params(1, 100), 10, kVocabSize);
  EXPECT_EQ(memory.held_bytes, 0);
  EXPECT_EQ(memory.record_bytes, 0);
  EXPECT_EQ(memory.total_bytes(), PlainOutputBytes(110));
}

TEST(OutputMemoryTest, DeltaNeedsNoRecordOfTheWholeOutput) {
  SamplingParams params = Params(1, 100, 5);
  params.output_kind = RequestOutputKind::kDelta;
  EXPECT_EQ(EstimateOutputMemory(params, 10, kVocabSize).record_bytes, 0);
  EXPECT_GT(EstimateOutputMemory(params, 10, kVocabSize).held_bytes, 0);
}

TEST(OutputMemoryTest, HugeFactorsSaturate) {
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Total(Params(128, max, 20)), max);
  EXPECT_EQ(Total(Params(1, max, -1), max), max);
}

TEST(OutputMemoryTest, DefaultLimitAdmitsOneSequenceOfMaximumLengthWithoutLogprobs) {
  EXPECT_EQ(DefaultMaxOutputMemory(80 * kGiB, 1000), 10 * kGiB);
  const int64_t limit = DefaultMaxOutputMemory(0, 1000);
  EXPECT_EQ(limit, PlainOutputBytes(1000));
  EXPECT_NO_THROW(CheckOutputMemory(Params(1, 900), 100, kVocabSize, limit));
}

TEST(OutputMemoryTest, RejectionHasTheNumbersAndARemedy) {
  SamplingParams params = Params(128, 100000, 20);
  params.prompt_logprobs = 3;
  std::string rejection;
  try {
    CheckOutputMemory(params, 50, kVocabSize, 4 * kGiB);
  } catch (const RequestError& error) {
    rejection = error.what();
  }
  EXPECT_EQ(rejection,
            "max_tokens: the output may take up to " + std::to_string(Total(params, 50)) +
                " bytes (n 128 x max_tokens 100000 x 21 logprobs, prompt of 50 tokens x 4 prompt_logprobs), limit "
                "4294967296; lower n, max_tokens, logprobs or prompt_logprobs, or raise --max-output-memory");
  EXPECT_NO_THROW(CheckOutputMemory(params, 50, kVocabSize, Total(params, 50)));
}

}  // namespace
}  // namespace vllm
