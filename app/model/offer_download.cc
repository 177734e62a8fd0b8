#include "app/model/offer_download.h"

#include <string>

#include "app/hub/hub_endpoint.h"
#include "app/hub/pull/pull.h"
#include "app/hub/pull/pull_display.h"
#include "app/output/ask_yes_no.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// Returns the host of the hub, for display.
std::string HubHost() {
  const std::string endpoint = HubEndpoint();
  const size_t scheme = endpoint.find("://");
  return scheme == std::string::npos ? endpoint : endpoint.substr(scheme + 3);
}

std::string QuestionOf(const PullPlan& plan) {
  const bool is_begun = plan.bytes_to_download < plan.total_bytes;
  std::string question = ToString(plan.model) + (is_begun ? " is only partly installed." : " is not installed.") +
                         " Download " + SizeText(plan.bytes_to_download);
  if (is_begun) question += " of " + SizeText(plan.total_bytes);
  // The user has not chosen the file.
  if (plan.model.tag.empty() && !plan.gguf_path.empty()) question += " (" + plan.gguf_path + ")";
  return question + " from " + HubHost() + "?";
}

PullPlan PlanOf(const MissingModelError& missing, PullDisplay& display) {
  try {
    return PlanPull({missing.reference(), {}, {}}, display);
  } catch (const RequestError& error) {
    throw ModelError(std::string(missing.what()) + "; " + error.what(), missing.hint());
  }
}

}  // namespace

void OfferDownload(const MissingModelError& missing) {
  if (IsHubOffline()) {
    throw ModelError(missing.what(), "HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE is set; without it, " + missing.hint());
  }
  if (!CanAsk()) throw missing;
  PullDisplay display(ToString(missing.reference()));
  const PullPlan plan = PlanOf(missing, display);
  display.Clear();
  if (plan.bytes_to_download > 0 && !AskYesNo(QuestionOf(plan), /*is_yes_default=*/true)) throw missing;
  try {
    Pull(plan, display);
  } catch (const Interrupted&) {
    display.OnNote("interrupted; the same command continues the download");
    throw;
  }
  display.Clear();
}

}  // namespace vllm::app
