#include "engine/core/step_interrupt.h"

#include <gtest/gtest.h>

#include <array>

namespace vllm {
namespace {

constexpr std::array<NumScheduledTokens, 2> kStepOfOneAndTwo = {{{1, 5}, {2, 5}}};
constexpr std::array<RequestId, 1> kOne = {1};
constexpr std::array<RequestId, 1> kTwo = {2};
constexpr std::array<RequestId, 2> kBoth = {1, 2};

TEST(StepInterruptTest, AbortOfAllRequestsCancelsTheStepImmediately) {
  for (const AbortUrgency urgency : {AbortUrgency::kAfterStep, AbortUrgency::kPrompt}) {
    StepInterrupt interrupt;
    interrupt.BeginStep(kStepOfOneAndTwo);
    EXPECT_FALSE(interrupt.flag().IsRequested());
    interrupt.Abort(kBoth, urgency);
    EXPECT_TRUE(interrupt.flag().IsCancelled());
  }
}

TEST(StepInterruptTest, AbortBeforeTheStepCancelsIt) {
  StepInterrupt interrupt;
  interrupt.Abort(kBoth, AbortUrgency::kPrompt);
  EXPECT_FALSE(interrupt.flag().IsRequested());
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsCancelled());
}

TEST(StepInterruptTest, AbortThatTheEngineHasProcessedCancelsNothing) {
  StepInterrupt interrupt;
  interrupt.Abort(kBoth, AbortUrgency::kPrompt);
  interrupt.TakenIn(kBoth);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, StopStringOfOneRequestLetsTheOthersFinishTheStep) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Abort(kOne, AbortUrgency::kAfterStep);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, UrgentAbortOfOneRequestSchedulesTheCancellationOfTheStep) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Abort(kOne, AbortUrgency::kPrompt);
  EXPECT_TRUE(interrupt.flag().IsRequested());
  interrupt.EndStep(false);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, StepAfterACancelledOneIsNotCancelled) {
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

TEST(StepInterruptTest, CancellingAStepOfOnlyAbortedRequestsDoesNotProtectTheNextStep) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Abort(kBoth, AbortUrgency::kPrompt);
  interrupt.EndStep(true);
  interrupt.TakenIn(kOne);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, ShutdownCancelsThisStepAndEveryLaterOne) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.Shutdown();
  EXPECT_TRUE(interrupt.flag().IsCancelled());
  interrupt.EndStep(true);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsCancelled());
}

TEST(StepInterruptTest, AbortOfARequestOutsideTheStepCancelsNothing) {
  constexpr std::array<NumScheduledTokens, 1> kStepOfOne = {{{1, 5}}};
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOne);
  interrupt.Abort(kTwo, AbortUrgency::kPrompt);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, ArrivalOfAnInteractiveRequestCancelsTheStep) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo);
  interrupt.ArriveInteractive(3);
  EXPECT_TRUE(interrupt.flag().IsCancelled());
}

TEST(StepInterruptTest, ArrivalBeforeTheStepCancelsItUnlessTheEngineHasReceivedTheRequest) {
  StepInterrupt interrupt;
  interrupt.ArriveInteractive(3);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsCancelled());
  interrupt.EndStep(true);
  interrupt.TakenInInteractive(3);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_FALSE(interrupt.flag().IsRequested());
}

TEST(StepInterruptTest, ArrivalDoesNotCancelAStepWithAnInteractiveRequest) {
  StepInterrupt interrupt;
  interrupt.BeginStep(kStepOfOneAndTwo, /*has_interactive_request=*/true);
  interrupt.ArriveInteractive(3);
  EXPECT_FALSE(interrupt.flag().IsRequested());
  interrupt.EndStep(false);
  interrupt.BeginStep(kStepOfOneAndTwo);
  EXPECT_TRUE(interrupt.flag().IsCancelled());
}

}  // namespace
}  // namespace vllm
