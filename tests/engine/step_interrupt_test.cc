#include "engine/core/step_interrupt.h"

#include <gtest/gtest.h>

#include <array>

namespace vllm {
namespace {

constexpr std::array<NumScheduledTokens, 2> kStepOfOneAndTwo = {{{1, 5}, {2, 5}}};
constexpr std::array<RequestId, 1> kOne = {1};
constexpr std::array<RequestId, 1> kTwo = {2};
constexpr std::array<RequestId, 2> kBoth = {1, 2};

TEST(StepInterruptTest, AStepWhoseRequestsAreAllAbortedIsCancelledAtOnce) {
  for (const AbortUrgency urgency : {AbortUrgency::kAfterStep, AbortUrgency::kPrompt}) {
    StepInterrupt interrupt;
    interrupt.BeginStep(kStepOfOneAndTwo);
    EXPECT_FALSE(interrupt.flag().IsRequested());
    interrupt.Abort(kBoth, urgency);
    EXPECT_TRUE(interrupt.flag().IsCancelled());
  }
}

TEST(StepInterruptTest, AnAbortThatComesBeforeTheStepCancelsIt) {
  StepInterrupt interrupt;
  interrupt.Abort(kBoth, AbortUrgency::kPrompt);
  EXPECT_FALSE(interrupt.flag().IsRequested());
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsCancelled());
}

TEST(StepInterruptTest, AnAbortThatTheEngineHasTakenInCancelsNothing) {
  StepInterrupt interrupt;
  interrupt.Abort(kBoth, AbortUrgency::kPrompt);
  interrupt.TakenIn(kBoth);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, AStopStringOfOneRequestLetsTheOthersFinishTheStep) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Abort(kOne, AbortUrgency::kAfterStep);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, APromptAbortOfOneRequestCancelsTheStepLater) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Abort(kOne, AbortUrgency::kPrompt);
  EXPECT_TRUE(interrupt.flag().IsRequested());
  interrupt.EndStep(false);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, TheStepAfterACutRunsToItsEnd) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Abort(kOne, AbortUrgency::kPrompt);
  interrupt.EndStep(true);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_FALSE(interrupt.flag().IsRequested());
  interrupt.EndStep(false);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, ACutForTheOnlyRequestsDoesNotProtectTheNextStep) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Abort(kBoth, AbortUrgency::kPrompt);
  interrupt.EndStep(true);
  interrupt.TakenIn(kOne);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, AShutdownCancelsThisStepAndEveryLaterOne) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Shutdown();
  EXPECT_TRUE(interrupt.flag().IsCancelled());
  interrupt.EndStep(true);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsCancelled());
}

TEST(StepInterruptTest, AnAbortOfARequestOutsideTheStepCancelsNothing) {
  constexpr std::array<NumScheduledTokens, 1> kStepOfOne = {{{1, 5}}};
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOne);
  interrupt.Abort(kTwo, AbortUrgency::kPrompt);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

}  // namespace
}  // namespace vllm
