#include "engine/sched/check_stop.h"

#include <gtest/gtest.h>

#include "tests/sched/scheduler_harness.h"

namespace vllm {
namespace {

constexpr int32_t kEos = 2;
constexpr int32_t kStopId = 9;

class CheckStopTest : public testing::Test {
 protected:
  // Appends the tokens one by one to a request with three prompt tokens, until CheckStop returns true. Returns the
  // status of the request.
  RequestStatus Run(const std::vector<int32_t>& token_ids, int64_t max_num_tokens = 100) {
    request_ = std::make_unique<Request>(MakeRequest(1, {1, 1, 1}, {.max_tokens = 50, .edit = [&](SamplingParams& p) {
                                                                      p = params_;
                                                                      p.eos_token_id = kEos;
                                                                    }}));
    request_->status = RequestStatus::kRunning;
    for (const int32_t token_id : token_ids) {
      request_->AppendOutputToken(token_id);
      if (CheckStop(*request_, max_num_tokens)) break;
    }
    return request_->status;
  }
  SamplingParams params_;
  std::unique_ptr<Request> request_;
};

TEST_F(CheckStopTest, OrdinaryTokenDoesNotStop) { EXPECT_EQ(Run({5, 6, 7}), RequestStatus::kRunning); }

TEST_F(CheckStopTest, EosStopsWithoutAStopReason) {
  EXPECT_EQ(Run({5, kEos, 7}), RequestStatus::kFinishedStopped);
  EXPECT_EQ(request_->num_output_tokens(), 2);
  EXPECT_FALSE(request_->stop_token_id.has_value());
}

TEST_F(CheckStopTest, IgnoredEosDoesNotStop) {
  params_.ignore_eos = true;
  EXPECT_EQ(Run({5, kEos, 7}), RequestStatus::kRunning);
}

TEST_F(CheckStopTest, StopTokenIdIsTheStopReason) {
  params_.stop_token_ids = {8, kStopId};
  EXPECT_EQ(Run({5, kStopId}), RequestStatus::kFinishedStopped);
  EXPECT_EQ(request_->stop_token_id, kStopId);
}

TEST_F(CheckStopTest, EosAmongTheStopTokenIdsCountsAsEos) {
  params_.stop_token_ids = {kEos};
  EXPECT_EQ(Run({kEos}), RequestStatus::kFinishedStopped);
  EXPECT_FALSE(request_->stop_token_id.has_value());
}

TEST_F(CheckStopTest, IgnoredEosStillStopsAsAStopTokenId) {
  params_.ignore_eos = true;
  params_.stop_token_ids = {kEos};
  EXPECT_EQ(Run({kEos}), RequestStatus::kFinishedStopped);
  EXPECT_EQ(request_->stop_token_id, kEos);
}

TEST_F(CheckStopTest, MaxTokensFinishesWithReasonLength) {
  params_.max_tokens = 2;
  EXPECT_EQ(Run({5}), RequestStatus::kRunning);
  EXPECT_EQ(Run({5, 6, 7}), RequestStatus::kFinishedLengthCapped);
  EXPECT_EQ(request_->num_output_tokens(), 2);
}

TEST_F(CheckStopTest, MaxNumTokensFinishesWithReasonLength) {
  EXPECT_EQ(Run({5, 6, 7}, 5), RequestStatus::kFinishedLengthCapped);
  EXPECT_EQ(request_->num_tokens(), 5);
}

TEST_F(CheckStopTest, EosAsTheLastAllowedTokenFinishesWithReasonStop) {
  params_.max_tokens = 1;
  EXPECT_EQ(Run({kEos}), RequestStatus::kFinishedStopped);
}

TEST_F(CheckStopTest, MinTokensSuppressesEosAndStopTokenIds) {
  params_.min_tokens = 3;
  params_.stop_token_ids = {kStopId};
  EXPECT_EQ(Run({kEos, kStopId}), RequestStatus::kRunning);
  EXPECT_EQ(Run({kEos, kStopId, kEos}), RequestStatus::kFinishedStopped);
  EXPECT_EQ(request_->num_output_tokens(), 3);
}

TEST_F(CheckStopTest, MinTokensSuppressesMaxTokensToo) {
  params_.max_tokens = 1;
  params_.min_tokens = 3;
  EXPECT_EQ(Run({5, 6}), RequestStatus::kRunning);
  EXPECT_EQ(Run({5, 6, 7}), RequestStatus::kFinishedLengthCapped);
}

TEST_F(CheckStopTest, MinTokensDoesNotSuppressMaxNumTokens) {
  params_.min_tokens = 40;
  EXPECT_EQ(Run({5, 6, 7}, 5), RequestStatus::kFinishedLengthCapped);
  EXPECT_EQ(request_->num_tokens(), 5);
}

}  // namespace
}  // namespace vllm
