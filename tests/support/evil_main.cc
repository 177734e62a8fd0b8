// The program with the failing model linked in, told by the environment what to fail at: EVIL_WHEN load|forward|logits,
// EVIL_RANK, EVIL_CALL; and where to wait: WAIT_LOAD and WAIT_FORWARD name FIFOs, WAIT_CALL a call. Only tests build
// and run it.
#include <cstdlib>
#include <string>

#include "app/commands/commands.h"
#include "tests/support/evil_model.h"

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

int main(int argc, char** argv) {
  using vllm::testing_support::EvilPlan;
  EvilPlan plan;
  const std::string when = Variable("EVIL_WHEN");
  if (when == "load") plan.when = EvilPlan::When::kLoad;
  if (when == "forward") plan.when = EvilPlan::When::kForward;
  if (when == "logits") plan.when = EvilPlan::When::kLogits;
  plan.rank = std::atoi(Variable("EVIL_RANK").c_str());
  plan.call = std::atoi(Variable("EVIL_CALL").c_str());
  vllm::testing_support::SetEvilPlan(plan);
  vllm::testing_support::SetWaitPlan(
      {Variable("WAIT_LOAD"), Variable("WAIT_FORWARD"), std::atoi(Variable("WAIT_CALL").c_str())});
  return vllm::Main(argc, argv);
}
