#include "app/commands/models/curated_list.h"

#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "app/hub/curated_models.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

std::string Padded(std::string text, size_t width) {
  text.append(text.size() < width ? width - text.size() : 0, ' ');
  return text;
}

}  // namespace

int ListCuratedModels(bool as_json) {
  if (as_json) {
    Json list = Json::array();
    for (const CuratedModel& model : CuratedModels()) {
      list.push_back({{"name", model.name},
                      {"download_mb", model.download_mb},
                      {"memory_mb", MemoryMb(model)},
                      {"license", model.license},
                      {"remark", model.remark}});
    }
    StandardOutput().WriteLine(SafeJson(DumpJson(list)));
    return 0;
  }
  size_t width = 0;
  for (const CuratedModel& model : CuratedModels()) width = std::max(width, model.name.size());
  std::string out = Padded("NAME", width) + "  DOWNLOAD  MEMORY  LICENSE     GOOD FOR\n";
  for (const CuratedModel& model : CuratedModels()) {
    out += Padded(std::string(model.name), width) + "    " + GigabytesText(model.download_mb) + "  " +
           GigabytesText(MemoryMb(model)) + "  " + Padded(std::string(model.license), 10) + "  " +
           std::string(model.remark) + "\n";
  }
  StandardOutput().Write(SafeText(out));
  PrintStatus("sizes are approximate; memory is for the weights and 4,096 tokens; vllmcli pull NAME downloads one");
  return 0;
}

}  // namespace vllm::app
