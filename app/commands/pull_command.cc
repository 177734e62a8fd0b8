#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/commands/models/curated_list.h"
#include "app/hub/model_reference.h"
#include "app/hub/pull/pull.h"
#include "app/hub/pull/pull_display.h"
#include "app/hub/repository_path.h"
#include "app/output/duration_text.h"
#include "app/output/json_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

PullRequest MakeRequest(const Settings& settings, const std::string& argument) {
  const std::optional<ModelReference> reference = ParseModelReference(argument);
  if (!reference) {
    throw ConfigError(
        "pull: not a model of the hub: must be OWNER/NAME[:TAG], or the URL of a model or a .gguf file (" +
            Escape(argument) + ")",
        "vllmcli pull --help has examples");
  }
  PullRequest request{*reference, settings.Texts("include"), settings.Texts("exclude")};
  const std::string revision = settings.Text("revision").value_or("");
  if (revision.empty()) return request;
  if (!IsRevision(revision)) {
    throw ConfigError("pull: --revision: not the name of a branch, a tag or a commit (" + Escape(revision) + ")");
  }
  if (!request.model.revision.empty() && request.model.revision != revision) {
    throw ConfigError("pull: --revision differs from the revision in the URL (" + Escape(revision) + ", " +
                      Escape(request.model.revision) + ")");
  }
  request.model.revision = revision;
  return request;
}

nlohmann::ordered_json PlanJson(const PullPlan& plan) {
  nlohmann::ordered_json json;
  json["model"] = ToString(plan.model);
  json["revision"] = plan.revision;
  json["commit"] = plan.commit;
  json["path"] = plan.ModelPath().string();
  json["bytes"] = plan.total_bytes;
  json["bytes_to_download"] = plan.bytes_to_download;
  json["files"] = nlohmann::ordered_json::array();
  for (const PullPlan::File& file : plan.files) {
    json["files"].push_back({{"path", file.file.path},
                             {"bytes", file.file.size},
                             {"cached", file.is_cached},
                             {"stored_bytes", file.is_cached ? file.file.size : file.stored_bytes}});
  }
  return json;
}

// Prints the files of a plan with their sizes.
void PrintPlan(const PullPlan& plan) {
  std::string out;
  for (const PullPlan::File& file : plan.files) {
    std::string size = SizeText(file.file.size);
    size.insert(0, size.size() < 10 ? 10 - size.size() : 0, ' ');
    out += size + "  " + std::string(SafeLine(file.file.path).view());
    if (file.is_cached) out += "  (in the cache)";
    if (!file.is_cached && file.stored_bytes > 0) out += "  (" + SizeText(file.stored_bytes) + " in the cache)";
    out += '\n';
  }
  StandardOutput().Write(SafeText(out));
  PrintStatus("pull: " + ToString(plan.model) + ": " + CountedText(static_cast<int64_t>(plan.files.size()), "file") +
              ", " + SizeText(plan.total_bytes) + ", " + SizeText(plan.bytes_to_download) + " to download");
}

// Names the choices that were made for the user.
void PrintChoice(const PullPlan& plan) {
  if (plan.gguf_path.empty() || plan.other_tags.empty()) return;
  std::string tags;
  for (const std::string& tag : plan.other_tags) tags += (tags.empty() ? "" : ", ") + tag;
  PrintStatus("pull: " + ToString(plan.model) + ": chose " + plan.gguf_path + "; other tags: " + tags);
}

void PullOne(const PullRequest& request, const Settings& settings) {
  const auto begin = std::chrono::steady_clock::now();
  PullDisplay display(ToString(request.model));
  const PullPlan plan = PlanPull(request, display);
  PrintChoice(plan);
  if (settings.Switch("dry-run")) {
    if (settings.Switch("json")) {
      StandardOutput().WriteLine(SafeJson(DumpJson(PlanJson(plan))));
    } else {
      PrintPlan(plan);
    }
    return;
  }
  std::string path;
  try {
    path = Pull(plan, display).string();
  } catch (const Interrupted&) {
    display.OnNote("interrupted; the same command continues the download");
    throw;
  }
  display.Clear();
  const std::string size = SizeText(plan.total_bytes);
  if (plan.bytes_to_download == 0) {
    PrintStatus("pull: " + ToString(plan.model) + ": complete in the cache (" + size + ")");
  } else {
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
    PrintStatus("pull: " + ToString(plan.model) + ": downloaded " + SizeText(display.received_bytes()) + " of " + size +
                " in " + DurationText(time));
  }
  if (settings.Switch("json")) {
    StandardOutput().WriteLine(SafeJson(DumpJson(PlanJson(plan))));
  } else {
    StandardOutput().WriteLine(SafeLine(path));
  }
}

}  // namespace

int PullCommand(const Settings& settings) {
  if (settings.Switch("list")) return ListCuratedModels(settings.Switch("json"));
  if (settings.arguments.empty()) {
    throw ConfigError("pull: expects REPO[:TAG]",
                      "vllmcli pull --list shows some models; vllmcli pull --help has examples");
  }
  std::vector<PullRequest> requests;
  for (const std::string& argument : settings.arguments) requests.push_back(MakeRequest(settings, argument));
  for (const PullRequest& request : requests) PullOne(request, settings);
  return 0;
}

}  // namespace vllm::app
