#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "app/commands/commands.h"
#include "app/model/model_hub.h"
#include "app/output/json_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"

namespace vllm::app {

int ModelsCommand(const Settings& settings) {
  const std::vector<ModelLocation> models = ListModels();
  if (settings.Switch("json")) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ModelLocation& model : models) {
      list.push_back(
          {{"name", model.name}, {"directory", model.path()}, {"origin", model.origin}, {"bytes", ModelBytes(model)}});
    }
    StandardOutput().WriteLine(SafeJson(DumpJson(list)));
    return 0;
  }
  size_t width = 4;
  for (const ModelLocation& model : models) width = std::max(width, model.name.size());
  std::string out;
  for (const ModelLocation& model : models) {
    std::string line(SafeLine(model.name).view());
    line.append(line.size() < width + 2 ? width + 2 - line.size() : 1, ' ');
    std::string size = SizeText(ModelBytes(model));
    size.insert(0, size.size() < 10 ? 10 - size.size() : 0, ' ');
    out += line + size + "  " + model.origin + "\n";
  }
  StandardOutput().Write(SafeText(out));
  return 0;
}

}  // namespace vllm::app
