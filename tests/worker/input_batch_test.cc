#include "engine/worker/input_batch.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>

namespace vllm {
namespace {

std::shared_ptr<EngineCoreRequest> MakeRequest(RequestId id, int32_t num_tokens) {
  auto request = std::make_shared<EngineCoreRequest>();
  request->request_id = id;
  for (int32_t i = 0; i < num_tokens; ++i) request->prompt_token_ids.push_back(i);
  request->sampling_params.max_tokens = 50;
  return request;
}

SchedulerOutput NewStep(const EngineCoreRequestPtr& request, std::vector<int32_t> block_ids, int64_t num_tokens) {
  SchedulerOutput step;
  step.scheduled_new_reqs.push_back({request, std::move(block_ids), 0});
  step.num_scheduled_tokens.push_back({request->request_id, num_tokens});
  return step;
}

SchedulerOutput CachedStep(RequestId id, bool resumed, int64_t num_computed, const std::vector<int32_t>& tokens,
                           const std::vector<int32_t>& block_ids, int64_t num_tokens) {
  SchedulerOutput step;
  CachedRequestData& data = step.scheduled_cached_reqs;
  data.request_ids = {id};
  data.resumed_from_preemption = {static_cast<uint8_t>(resumed)};
  data.num_computed_tokens = {num_computed};
  data.new_token_ids = tokens;
  data.new_token_offsets = {0, tokens.size()};
  data.new_block_ids = block_ids;
  data.new_block_offsets = {0, block_ids.size()};
  data.spec_token_offsets = {0, 0};
  step.num_scheduled_tokens.push_back({id, num_tokens});
  return step;
}

TEST(InputBatchTest, EachKVCacheGroupHasItsOwnSlotMapping) {
  InputBatch batch(64, 256, 16, 2);
  batch.Update(NewStep(MakeRequest(1, 40), {1, 2, 3, 4}, 20));
  ASSERT_EQ(batch.attention().groups.size(), 2u);
  EXPECT_EQ(batch.attention().groups[0].slot_mapping[17], 2 * 16 + 1);
  EXPECT_EQ(batch.attention().groups[1].slot_mapping[0], 3 * 16);
  EXPECT_EQ(batch.attention().groups[1].slot_mapping[17], 4 * 16 + 1);
  batch.Update(CachedStep(1, false, 20, {}, {5, 6}, 20));
  EXPECT_EQ(batch.attention().groups[0].slot_mapping[19], 5 * 16 + 7);
  EXPECT_EQ(batch.attention().groups[1].slot_mapping[19], 6 * 16 + 7);
  EXPECT_EQ(batch.attention().groups[1].sequences[0].block_table[0], 3);
  EXPECT_EQ(batch.attention().groups[1].sequences[0].first_position, 20);
}

TEST(InputBatchTest, UnequalNumbersOfBlocksPerGroupAreRejected) {
  InputBatch batch(64, 256, 16, 2);
  EXPECT_THROW(batch.Update(NewStep(MakeRequest(1, 40), {1, 2, 3}, 20)), std::logic_error);
}

TEST(InputBatchTest, BlockTablesOfAResumedRequestAreReplaced) {
  InputBatch batch(64, 256, 16, 2);
  batch.Update(NewStep(MakeRequest(1, 20), {1, 2, 3, 4}, 20));
  batch.Update(CachedStep(1, true, 16, {7}, {0, 6, 7, 8}, 5));
  EXPECT_EQ(batch.attention().groups[0].slot_mapping[0], 6 * 16);
  EXPECT_EQ(batch.attention().groups[1].slot_mapping[4], 8 * 16 + 4);
}

TEST(InputBatchTest, PromptLogprobsRestartIfARequestIsPreemptedBeforeItsFirstToken) {
  InputBatch batch(64, 256, 16, 1);
  batch.Update(NewStep(MakeRequest(1, 40), {1, 2}, 20));
  batch.entries()[0].state->num_prompt_logprobs = 20;
  batch.Update(CachedStep(1, true, 0, {}, {3, 4}, 20));
  EXPECT_EQ(batch.entries()[0].state->num_prompt_logprobs, 0);
}

TEST(InputBatchTest, PromptLogprobsAreNotReturnedAgainAfterTheFirstToken) {
  InputBatch batch(64, 256, 16, 1);
  batch.Update(NewStep(MakeRequest(1, 20), {1, 2}, 20));
  batch.entries()[0].state->num_prompt_logprobs = 19;
  batch.Update(CachedStep(1, true, 0, {5}, {3, 4}, 20));
  EXPECT_EQ(batch.entries()[0].state->num_prompt_logprobs, 19);
}

}  // namespace
}  // namespace vllm
