#include "engine/frontend/admission_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/frontend/parent_request.h"

namespace vllm {
namespace {

using Ids = std::vector<RequestId>;

class AdmissionQueueTest : public ::testing::Test {
 protected:
  static std::vector<EngineCoreRequestPtr> Sequences(RequestId first_id, int64_t n) {
    ProcessedInput input;
    input.prompt_token_ids = {1, 2, 3};
    input.params.n = n;
    input.params.seed = 5;
    input.params.prompt_logprobs = 1;
    const auto sequences = FanOut(input, RequestOptions(), first_id, {});
    return {sequences.begin(), sequences.end()};
  }
  void AddHolding(const std::string& request_id, RequestId id, int64_t held_bytes, int64_t record_bytes = 0) {
    queue_.Add(request_id, Sequences(id, 1), {0, held_bytes, record_bytes}, {.first_alone = false});
  }
  Ids Ready() {
    std::vector<EngineCoreRequestPtr> requests;
    queue_.TakeReady(requests);
    Ids ids;
    for (const EngineCoreRequestPtr& request : requests) ids.push_back(request->request_id);
    return ids;
  }
  void Update(RequestId id, std::vector<int32_t> tokens, FinishReason reason = FinishReason::kNone) {
    EngineCoreOutputs outputs;
    EngineCoreOutput& output = outputs.Add(id);
    output.new_token_ids = std::move(tokens);
    output.finish_reason = reason;
    queue_.Update(outputs);
  }

  AdmissionQueue queue_{100};
};

TEST_F(AdmissionQueueTest, RequestsWaitWhileOthersHoldTheMemory) {
  AddHolding("a", 1, 60);
  AddHolding("b", 2, 40);
  AddHolding("c", 3, 30);
  AddHolding("d", 4, 70);
  EXPECT_EQ(Ready(), (Ids{1, 2}));
  queue_.Remove("b");
  EXPECT_EQ(Ready(), (Ids{3}));
  queue_.Remove("a");
  EXPECT_EQ(Ready(), (Ids{4}));
}

TEST_F(AdmissionQueueTest, SmallRequestDoesNotOvertakeALargeOne) {
  AddHolding("a", 1, 60);
  AddHolding("b", 2, 90);
  AddHolding("c", 3, 1);
  EXPECT_EQ(Ready(), (Ids{1}));
  queue_.Remove("a");
  EXPECT_EQ(Ready(), (Ids{2, 3}));
}

TEST_F(AdmissionQueueTest, OnlyTheLargestRecordCounts) {
  AddHolding("a", 1, 20, 50);
  AddHolding("b", 2, 20, 50);
  AddHolding("c", 3, 20, 50);
  EXPECT_EQ(Ready(), (Ids{1, 2}));
}

TEST_F(AdmissionQueueTest, OneRequestIsAlwaysAdmitted) {
  AddHolding("a", 1, 1000);
  EXPECT_EQ(Ready(), (Ids{1}));
}

TEST_F(AdmissionQueueTest, RemovingAWaitingRequestAdmitsTheNext) {
  AddHolding("a", 1, 90);
  AddHolding("b", 2, 90);
  AddHolding("c", 3, 10);
  EXPECT_EQ(Ready(), (Ids{1}));
  queue_.Remove("b");
  EXPECT_EQ(Ready(), (Ids{3}));
}

TEST_F(AdmissionQueueTest, RequestRemovedBeforeItIsTakenNeverEntersTheEngine) {
  AddHolding("a", 1, 90);
  AddHolding("b", 2, 90);
  EXPECT_EQ(Ready(), (Ids{1}));
  queue_.Remove("a");
  queue_.Remove("b");
  EXPECT_EQ(Ready(), Ids());
}

TEST_F(AdmissionQueueTest, OtherSequencesWaitForTheFirstToken) {
  queue_.Add("a", Sequences(10, 3), {}, {.first_alone = true});
  EXPECT_EQ(Ready(), (Ids{10}));
  Update(10, {});
  EXPECT_EQ(Ready(), Ids());
  Update(10, {7});
  EXPECT_EQ(Ready(), (Ids{11, 12}));
  Update(10, {7});
  EXPECT_EQ(Ready(), Ids());
}

TEST_F(AdmissionQueueTest, OtherSequencesAlsoEnterIfTheFirstEndsWithoutAToken) {
  queue_.Add("a", Sequences(10, 2), {}, {.first_alone = true});
  EXPECT_EQ(Ready(), (Ids{10}));
  Update(10, {}, FinishReason::kError);
  EXPECT_EQ(Ready(), (Ids{11}));
}

TEST_F(AdmissionQueueTest, WithoutFirstAloneAllSequencesEnterTogether) {
  queue_.Add("a", Sequences(10, 3), {}, {.first_alone = false});
  EXPECT_EQ(Ready(), (Ids{10, 11, 12}));
}

TEST(FanOutTest, EachSequenceHasItsOwnIdAndSeed) {
  ProcessedInput input;
  input.prompt_token_ids = {1, 2, 3};
  input.params.n = 3;
  input.params.seed = 5;
  input.params.prompt_logprobs = 1;
  const auto requests = FanOut(input, {2, "salt"}, 10, {});
  ASSERT_EQ(requests.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(requests[i]->request_id, 10 + i);
    EXPECT_EQ(requests[i]->sampling_params.n, 1);
    EXPECT_EQ(requests[i]->sampling_params.seed, 5 + i);
    EXPECT_EQ(requests[i]->sampling_params.prompt_logprobs.has_value(), i == 0);
    EXPECT_EQ(requests[i]->prompt_token_ids, input.prompt_token_ids);
    EXPECT_EQ(requests[i]->priority, 2);
    EXPECT_EQ(requests[i]->cache_salt, "salt");
  }
}

TEST_F(AdmissionQueueTest, InteractiveRequestEntersAtOnceAndCountsForLaterOnes) {
  AddHolding("a", 1, 60);
  AddHolding("b", 2, 50);
  queue_.Add("chat", Sequences(3, 1), {0, 30, 0}, {.regardless_of_memory = true});
  EXPECT_EQ(Ready(), (Ids{1, 3}));
  queue_.Remove("a");
  EXPECT_EQ(Ready(), (Ids{2}));
  AddHolding("c", 4, 30);
  EXPECT_EQ(Ready(), (Ids{}));
  queue_.Remove("chat");
  EXPECT_EQ(Ready(), (Ids{4}));
}

}  // namespace
}  // namespace vllm
