// vllmcli with the model of faulty_model.h linked in, for tests only. Environment variables set the plans:
//   FAULT_WHEN=load|forward|logits, FAULT_RANK, FAULT_CALL  the fields of FaultPlan, except row, which is 0
//   WAIT_LOAD, WAIT_FORWARD, WAIT_CALL                      the fields of WaitPlan (two FIFOs and a call)
#include <cstdlib>
#include <string>

#include "app/commands/commands.h"
#include "tests/support/faulty_model.h"

namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

int main(int argc, char** argv) {
  using vllm::testing_support::FaultPlan;
  FaultPlan plan;
  const std::string when = Variable("FAULT_WHEN");
  if (when == "load") plan.when = FaultPlan::When::kLoad;
  if (when == "forward") plan.when = FaultPlan::When::kForward;
  if (when == "logits") plan.when = FaultPlan::When::kLogits;
  plan.rank = std::atoi(Variable("FAULT_RANK").c_str());
  plan.call = std::atoi(Variable("FAULT_CALL").c_str());
  vllm::testing_support::SetFaultPlan(plan);
  vllm::testing_support::SetWaitPlan(
      {Variable("WAIT_LOAD"), Variable("WAIT_FORWARD"), std::atoi(Variable("WAIT_CALL").c_str())});
  return vllm::app::Main(argc, argv);
}
