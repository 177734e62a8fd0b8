#include "engine/frontend/output_processor.h"

#include <gtest/gtest.h>

#include "tests/frontend/byte_tokenizer.h"

namespace vllm {
namespace {

using testing::Bytes;
using testing::kEos;
using testing::kWord;

class OutputProcessorTest : public ::testing::Test {
 protected:
  // Registers a request whose sequences have the ids first_id, first_id + 1, ...
  void Add(const std::string& request_id, RequestId first_id, SamplingParams params) {
    processor_.AddRequest(std::make_unique<ParentRequest>(
        request_id, ProcessedInput{Bytes("prompt"), std::move(params)}, first_id, std::chrono::steady_clock::now()));
  }

  const std::vector<RequestOutput>& Process(const EngineCoreOutputs& outputs) {
    const ProcessedOutputs& processed = processor_.Process(outputs);
    reqs_to_abort_ = processed.reqs_to_abort;
    return processed.request_outputs;
  }

  // Processes one output of the sequence `id`, with a logprob for each token.
  const std::vector<RequestOutput>& Feed(RequestId id, std::vector<int32_t> ids,
                                         FinishReason reason = FinishReason::kNone,
                                         std::optional<int32_t> stop_token_id = std::nullopt) {
    EngineCoreOutputs outputs;
    EngineCoreOutput& output = outputs.Add(id);
    for (const int32_t token : ids) AppendLogprob(token, output.new_logprobs);
    output.new_token_ids = std::move(ids);
    output.finish_reason = reason;
    output.stop_token_id = stop_token_id;
    return Process(outputs);
  }

  static void AppendLogprob(int32_t token, Logprobs& logprobs) {
    logprobs.width = 2;
    logprobs.token_ids.insert(logprobs.token_ids.end(), {token, 0});
    logprobs.logprobs.insert(logprobs.logprobs.end(), {-1.0f, -2.0f});
    logprobs.ranks.push_back(1);
  }

  static SamplingParams Params(RequestOutputKind kind, std::vector<std::string> stop = {}) {
    SamplingParams params;
    params.output_kind = kind;
    params.stop = std::move(stop);
    params.seed = 5;
    return params;
  }

  std::unique_ptr<tokenizer::Tokenizer> tokenizer_ = testing::MakeByteTokenizer();
  OutputProcessor processor_{tokenizer_.get()};
  std::vector<RequestId> reqs_to_abort_;  // from the last call to Process
};

TEST_F(OutputProcessorTest, CumulativeOutputsContainEverythingSoFar) {
  Add("a", 1, Params(RequestOutputKind::kCumulative));
  Feed(1, Bytes("he"));
  const auto& outputs = Feed(1, Bytes("y"), FinishReason::kLength);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].request_id, "a");
  EXPECT_TRUE(outputs[0].finished);
  EXPECT_EQ(outputs[0].prompt_token_ids, Bytes("prompt"));
  EXPECT_EQ(outputs[0].outputs[0].text, "hey");
  EXPECT_EQ(outputs[0].outputs[0].token_ids, Bytes("hey"));
  EXPECT_EQ(outputs[0].outputs[0].logprobs.num_positions(), 3u);
  EXPECT_DOUBLE_EQ(outputs[0].outputs[0].cumulative_logprob, -3.0);
  EXPECT_EQ(outputs[0].outputs[0].finish_reason, FinishReason::kLength);
}

TEST_F(OutputProcessorTest, DeltasAddUpAndContainThePromptOnce) {
  Add("a", 1, Params(RequestOutputKind::kDelta));
  auto first = Feed(1, Bytes("he"));
  EXPECT_EQ(first[0].prompt_token_ids, Bytes("prompt"));
  EXPECT_EQ(first[0].outputs[0].text, "he");
  auto second = Feed(1, Bytes("y!"), FinishReason::kLength);
  EXPECT_TRUE(second[0].prompt_token_ids.empty());
  EXPECT_EQ(second[0].outputs[0].text, "y!");
  EXPECT_EQ(second[0].outputs[0].token_ids, Bytes("y!"));
  EXPECT_EQ(second[0].outputs[0].logprobs.num_positions(), 2u);
  EXPECT_DOUBLE_EQ(second[0].outputs[0].cumulative_logprob, -4.0);
}

TEST_F(OutputProcessorTest, FinalOnlyReturnsNothingUntilTheEnd) {
  Add("a", 1, Params(RequestOutputKind::kFinalOnly));
  EXPECT_TRUE(Feed(1, Bytes("he")).empty());
  const auto& outputs = Feed(1, Bytes("y"), FinishReason::kLength);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].outputs[0].text, "hey");
}

TEST_F(OutputProcessorTest, DeltaWithoutTextStillHasItsTokens) {
  Add("a", 1, Params(RequestOutputKind::kDelta));
  const auto& outputs = Feed(1, Bytes("\xE2\x82"));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].outputs[0].text, "");
  EXPECT_EQ(outputs[0].outputs[0].token_ids.size(), 2u);
}

TEST_F(OutputProcessorTest, StopStringEndsTheRequestAndAbortsItInTheEngine) {
  Add("a", 1, Params(RequestOutputKind::kDelta, {"END"}));
  EXPECT_EQ(Feed(1, Bytes("abcE"))[0].outputs[0].text, "ab");
  auto outputs = Feed(1, Bytes("ND"));
  EXPECT_TRUE(outputs[0].finished);
  EXPECT_EQ(outputs[0].outputs[0].text, "c");
  EXPECT_EQ(outputs[0].outputs[0].finish_reason, FinishReason::kStop);
  EXPECT_EQ(std::get<std::string>(outputs[0].outputs[0].stop_reason), "END");
  EXPECT_EQ(reqs_to_abort_, std::vector<RequestId>{1});
  EXPECT_EQ(processor_.num_unfinished(), 0u);
  // Tokens that the engine sampled before it received the abort are dropped.
  EXPECT_TRUE(Feed(1, Bytes("more")).empty());
}

TEST_F(OutputProcessorTest, TokensSampledAfterTheStopStringAreDropped) {
  for (const auto kind : {RequestOutputKind::kCumulative, RequestOutputKind::kDelta, RequestOutputKind::kFinalOnly}) {
    Add("a", 1, Params(kind, {"END"}));
    const auto& outputs = Feed(1, Bytes("xENDyz"));
    ASSERT_EQ(outputs.size(), 1u);
    EXPECT_EQ(outputs[0].outputs[0].text, "x");
    EXPECT_EQ(outputs[0].outputs[0].token_ids, Bytes("xEND"));
    EXPECT_EQ(outputs[0].outputs[0].logprobs.num_positions(), 4u);
    EXPECT_DOUBLE_EQ(outputs[0].outputs[0].cumulative_logprob, -4.0);
    EXPECT_EQ(outputs[0].metrics.num_generation_tokens, 4);
  }
}

TEST_F(OutputProcessorTest, StopStringBeforeTheEnginesFinishReasonWinsWithoutAnAbort) {
  Add("a", 1, Params(RequestOutputKind::kFinalOnly, {"END"}));
  const auto& outputs = Feed(1, Bytes("xENDyz"), FinishReason::kLength);
  EXPECT_EQ(outputs[0].outputs[0].finish_reason, FinishReason::kStop);
  EXPECT_EQ(std::get<std::string>(outputs[0].outputs[0].stop_reason), "END");
  EXPECT_TRUE(reqs_to_abort_.empty());
}

TEST_F(OutputProcessorTest, StopTokenIsInTheIdsButNotInTheText) {
  Add("a", 1, Params(RequestOutputKind::kFinalOnly));
  const auto& outputs = Feed(1, {'o', 'k', kWord}, FinishReason::kStop, kWord);
  EXPECT_EQ(outputs[0].outputs[0].text, "ok");
  EXPECT_EQ(outputs[0].outputs[0].token_ids, (std::vector<int32_t>{'o', 'k', kWord}));
  EXPECT_EQ(std::get<int32_t>(outputs[0].outputs[0].stop_reason), kWord);
}

TEST_F(OutputProcessorTest, StopTokenIsInTheTextIfRequested) {
  auto params = Params(RequestOutputKind::kFinalOnly);
  params.include_stop_str_in_output = true;
  Add("a", 1, params);
  EXPECT_EQ(Feed(1, {'o', 'k', kWord}, FinishReason::kStop, kWord)[0].outputs[0].text, "ok word");
}

TEST_F(OutputProcessorTest, EosHasNoStopReason) {
  Add("a", 1, Params(RequestOutputKind::kFinalOnly));
  const auto& outputs = Feed(1, {'o', 'k', kEos}, FinishReason::kStop);
  EXPECT_EQ(outputs[0].outputs[0].text, "ok");
  EXPECT_TRUE(std::holds_alternative<std::monostate>(outputs[0].outputs[0].stop_reason));
}

TEST_F(OutputProcessorTest, TextOfAHiddenStopTokenCompletesNoStopString) {
  Add("a", 1, Params(RequestOutputKind::kFinalOnly, {"ok wo"}));
  const auto& outputs = Feed(1, {'o', 'k', kWord}, FinishReason::kStop, kWord);
  EXPECT_EQ(outputs[0].outputs[0].text, "ok");
  EXPECT_EQ(std::get<int32_t>(outputs[0].outputs[0].stop_reason), kWord);
}

TEST_F(OutputProcessorTest, HeldBackTextIsReleasedWhenTheRequestEnds) {
  Add("a", 1, Params(RequestOutputKind::kDelta, {"ENDING"}));
  EXPECT_EQ(Feed(1, Bytes("abEND"))[0].outputs[0].text, "");
  EXPECT_EQ(Feed(1, Bytes("!"), FinishReason::kLength)[0].outputs[0].text, "abEND!");
}

TEST_F(OutputProcessorTest, WithoutDetokenizationThereAreOnlyIds) {
  auto params = Params(RequestOutputKind::kDelta);
  params.detokenize = false;
  Add("a", 1, params);
  const auto& outputs = Feed(1, Bytes("abc"));
  EXPECT_EQ(outputs[0].outputs[0].text, "");
  EXPECT_EQ(outputs[0].outputs[0].token_ids, Bytes("abc"));
}

TEST_F(OutputProcessorTest, AbortReturnsTheTextSoFarInTheNextStep) {
  Add("a", 1, Params(RequestOutputKind::kCumulative, {"LONGSTOP"}));
  Feed(1, Bytes("partial"));
  EXPECT_EQ(processor_.AbortRequest("a"), std::vector<RequestId>{1});
  EXPECT_TRUE(processor_.AbortRequest("a").empty());
  EXPECT_TRUE(processor_.AbortRequest("unknown").empty());
  EXPECT_EQ(processor_.num_unfinished(), 1u);
  EXPECT_TRUE(processor_.HasPendingOutputs());
  const std::vector<RequestOutput>& outputs = Process(EngineCoreOutputs());
  ASSERT_EQ(outputs.size(), 1u);
  const RequestOutput& output = outputs[0];
  EXPECT_TRUE(output.finished);
  EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kAbort);
  EXPECT_EQ(output.outputs[0].text, "partial");
  EXPECT_EQ(output.outputs[0].token_ids, Bytes("partial"));
  EXPECT_EQ(processor_.num_unfinished(), 0u);
}

TEST_F(OutputProcessorTest, EngineErrorIsReportedForItsRequest) {
  Add("a", 1, Params(RequestOutputKind::kDelta));
  EngineCoreOutputs outputs;
  EngineCoreOutput& output = outputs.Add(1);
  output.finish_reason = FinishReason::kError;
  output.error = "logits are not numbers";
  const std::vector<RequestOutput>& request_outputs = Process(outputs);
  ASSERT_EQ(request_outputs.size(), 1u);
  EXPECT_EQ(request_outputs[0].error, "logits are not numbers");
  EXPECT_EQ(request_outputs[0].outputs[0].finish_reason, FinishReason::kError);
}

TEST_F(OutputProcessorTest, EngineFailureEndsEveryRequestInOrder) {
  for (RequestId id = 1; id <= 5; ++id) Add("r" + std::to_string(id), id, Params(RequestOutputKind::kFinalOnly));
  Feed(3, Bytes("abc"));
  const std::vector<RequestOutput>& outputs = Process(EngineCoreOutputs());
  processor_.FailAll("rank 1: out of memory");
  ASSERT_EQ(outputs.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    const RequestOutput& output = outputs[i];
    EXPECT_EQ(output.request_id, "r" + std::to_string(i + 1));
    EXPECT_EQ(output.error, "rank 1: out of memory");
    EXPECT_EQ(output.outputs[0].finish_reason, FinishReason::kError);
    EXPECT_EQ(output.outputs[0].text, i == 2 ? "abc" : "");
  }
  EXPECT_EQ(processor_.num_unfinished(), 0u);
}

TEST_F(OutputProcessorTest, FinalOnlySequencesAreReturnedTogetherInOrder) {
  auto params = Params(RequestOutputKind::kFinalOnly);
  params.n = 3;
  Add("a", 10, params);
  EXPECT_TRUE(Feed(12, Bytes("two"), FinishReason::kLength).empty());
  EXPECT_TRUE(Feed(10, Bytes("zero"), FinishReason::kLength).empty());
  const auto& outputs = Feed(11, Bytes("one"), FinishReason::kLength);
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_TRUE(outputs[0].finished);
  ASSERT_EQ(outputs[0].outputs.size(), 3u);
  EXPECT_EQ(outputs[0].outputs[0].text, "zero");
  EXPECT_EQ(outputs[0].outputs[1].text, "one");
  EXPECT_EQ(outputs[0].outputs[2].text, "two");
  EXPECT_EQ(outputs[0].outputs[2].index, 2);
  EXPECT_EQ(outputs[0].metrics.num_generation_tokens, 10);
}

TEST_F(OutputProcessorTest, StreamedSequencesHaveTheirIndexAndTheLastOneFinishesTheRequest) {
  auto params = Params(RequestOutputKind::kDelta);
  params.n = 2;
  Add("a", 10, params);
  EXPECT_EQ(Feed(11, Bytes("b"))[0].outputs[0].index, 1);
  EXPECT_FALSE(Feed(11, Bytes("b"), FinishReason::kLength)[0].finished);
  EXPECT_EQ(Feed(10, Bytes("a"))[0].outputs[0].index, 0);
  EXPECT_TRUE(Feed(10, Bytes("a"), FinishReason::kLength)[0].finished);
}

TEST_F(OutputProcessorTest, AbortEndsAllSequencesIncludingThoseThatNeverStarted) {
  for (const auto kind : {RequestOutputKind::kCumulative, RequestOutputKind::kFinalOnly}) {
    auto params = Params(kind);
    params.n = 3;
    Add("a", 10, params);
    Feed(10, Bytes("done"), FinishReason::kLength);
    Feed(11, Bytes("half"));
    EXPECT_EQ(processor_.AbortRequest("a"), (std::vector<RequestId>{11, 12}));
    const std::vector<RequestOutput>& outputs = Process(EngineCoreOutputs());
    ASSERT_EQ(outputs.size(), 1u);
    const auto& completions = outputs[0].outputs;
    // A finished sequence was returned before, unless all sequences are returned together.
    const size_t num_returned = kind == RequestOutputKind::kFinalOnly ? 0 : 1;
    ASSERT_EQ(completions.size(), 3 - num_returned);
    EXPECT_EQ(completions[1 - num_returned].text, "half");
    EXPECT_EQ(completions.back().finish_reason, FinishReason::kAbort);
    EXPECT_EQ(completions.back().index, 2);
  }
}

TEST_F(OutputProcessorTest, PromptLogprobsComeWithTheFirstDeltaOrWithEveryCumulativeOutput) {
  for (const auto kind : {RequestOutputKind::kDelta, RequestOutputKind::kCumulative}) {
    Add("a", 1, Params(kind));
    EngineCoreOutputs outputs;
    EngineCoreOutput& output = outputs.Add(1);
    output.new_token_ids = {'x'};
    for (const int32_t id : Bytes("rompt")) AppendLogprob(id, output.prompt_logprobs);
    EXPECT_EQ(Process(outputs)[0].prompt_logprobs.num_positions(), 5u);
    const auto& next = Feed(1, Bytes("y"), FinishReason::kLength);
    EXPECT_EQ(next[0].prompt_logprobs.num_positions(), kind == RequestOutputKind::kDelta ? 0u : 5u);
  }
}

TEST_F(OutputProcessorTest, OutputsOfFinalOnlyAndAbortedRequestsHaveTheirArrivalTime) {
  const SteadyTime before = std::chrono::steady_clock::now();
  SamplingParams params = Params(RequestOutputKind::kFinalOnly);
  params.n = 2;
  Add("a", 1, params);
  Feed(1, Bytes("x"), FinishReason::kLength);
  const auto& collected = Feed(2, Bytes("y"), FinishReason::kLength);
  ASSERT_EQ(collected.size(), 1u);
  EXPECT_GE(collected[0].metrics.arrival_time, before);
  Add("b", 3, Params(RequestOutputKind::kDelta));
  Feed(3, Bytes("x"));
  processor_.AbortRequest("b");
  const auto& aborted = Process(EngineCoreOutputs());
  ASSERT_EQ(aborted.size(), 1u);
  EXPECT_GE(aborted[0].metrics.arrival_time, before);
}

TEST_F(OutputProcessorTest, MetricsCountFinishedRequests) {
  Add("a", 1, Params(RequestOutputKind::kFinalOnly));
  Feed(1, Bytes("abc"), FinishReason::kLength);
  const FrontendMetrics& metrics = processor_.metrics();
  EXPECT_EQ(metrics.num_prompt_tokens, 6);
  EXPECT_EQ(metrics.num_generation_tokens, 3);
  EXPECT_EQ(metrics.num_finished[static_cast<size_t>(FinishReason::kLength)], 1);
  EXPECT_EQ(metrics.e2e_latency.count(), 1);
}

TEST(DurationHistogramTest, PercentilesAreWithinTenPercent) {
  DurationHistogram histogram;
  EXPECT_EQ(histogram.Percentile(0.5), Seconds(0));
  for (int i = 1; i <= 1000; ++i) histogram.Add(Seconds(i * 1e-3));
  EXPECT_NEAR(histogram.Percentile(0.5).count(), 0.5, 0.05);
  EXPECT_NEAR(histogram.Percentile(0.99).count(), 0.99, 0.1);
  EXPECT_EQ(histogram.Percentile(1.0), Seconds(1));
  EXPECT_NEAR(histogram.mean().count(), 0.5005, 1e-9);
}

TEST(DurationHistogramTest, InvalidDurationsAreIgnoredAndExtremeDurationsAreCounted) {
  DurationHistogram histogram;
  histogram.Add(Seconds(-1.0));
  histogram.Add(Seconds(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(histogram.count(), 0);
  histogram.Add(Seconds(0));
  histogram.Add(Seconds(1e12));
  EXPECT_EQ(histogram.count(), 2);
}

TEST_F(OutputProcessorTest, BeamSearchReturnsTheSequencesThatWereFoundInOneOutput) {
  SamplingParams params = Params(RequestOutputKind::kDelta);
  params.use_beam_search = true;
  params.beam_width = params.n = 3;
  Add("beams", 10, params);
  EngineCoreOutputs outputs;
  for (RequestId id = 10; id < 13; ++id) {
    EngineCoreOutput& output = outputs.Add(id);
    output.finish_reason = FinishReason::kLength;
    if (id == 12) continue;  // there is no third sequence
    output.new_token_ids = Bytes(id == 10 ? "best" : "next");
    output.beam_score = id == 10 ? -0.5 : -0.75;
    output.cumulative_logprob = id == 10 ? -2.0 : -3.0;
  }
  const std::vector<RequestOutput>& processed = Process(outputs);
  ASSERT_EQ(processed.size(), 1u);
  EXPECT_TRUE(processed[0].finished);
  ASSERT_EQ(processed[0].outputs.size(), 2u);
  EXPECT_EQ(processed[0].outputs[0].text, "best");
  EXPECT_EQ(processed[0].outputs[0].score, -0.5);
  EXPECT_EQ(processed[0].outputs[0].cumulative_logprob, -2.0);
  EXPECT_EQ(processed[0].outputs[1].text, "next");
  EXPECT_EQ(processed[0].outputs[1].index, 1);
  EXPECT_EQ(processor_.num_unfinished(), 0u);
}

}  // namespace
}  // namespace vllm
