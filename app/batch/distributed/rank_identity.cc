#include "app/batch/distributed/rank_identity.h"

#include <nlohmann/json.hpp>

#include "app/batch/job/job_identity.h"
#include "app/model/model_files.h"

namespace vllm::app {

std::string RankIdentity(const Settings& settings, const std::optional<PresetPrompt>& preset) {
  const nlohmann::ordered_json header = MakeJobHeader(settings, preset, LocateModel(settings), std::nullopt);
  const nlohmann::ordered_json identity = {{"model", header["model"]}, {"settings", header["settings"]}};
  return identity.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace);
}

std::string IdentityMismatch(const std::string& own, const std::string& other) {
  if (own == other) return {};
  const auto other_identity = nlohmann::ordered_json::parse(other, nullptr, /*allow_exceptions=*/false);
  if (!other_identity.is_object()) return "it sent no identity";
  std::string text;
  for (const JobDifference& difference : JobDifferences(nlohmann::ordered_json::parse(own), other_identity)) {
    text += (text.empty() ? "" : "; ") + MismatchText(difference);
  }
  return text;
}

}  // namespace vllm::app
