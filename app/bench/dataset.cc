#include "app/bench/dataset.h"

#include <string_view>

#include "app/batch/input/row_parser.h"
#include "app/model/model_files.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;

}  // namespace

std::string ReadDataset(const Settings& settings) {
  for (const char* name : {"input-len", "prefix-len"}) {
    if (!settings.Has(name)) continue;
    throw ConfigError(std::string("--") + name +
                      ": cannot be used with --dataset, whose prompts have their own length");
  }
  return ReadFileOrStdin(*settings.Text("dataset"), kMaxFileBytes);
}

std::vector<BatchRow> ParseDataset(const std::string& text, const std::string& path, int64_t max_rows,
                                   const LoadedModel& model) {
  RowDefaults defaults;
  defaults.params = model.sampling_params;
  defaults.carries = false;
  const RowParser parser(path.ends_with(".jsonl") ? InputFormat::kJsonLines : InputFormat::kText, std::move(defaults),
                         model.renderer.get());
  std::vector<BatchRow> rows;
  int64_t line_number = 0;
  for (std::string_view rest = text; !rest.empty() && static_cast<int64_t>(rows.size()) < max_rows;) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    ++line_number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      RowId id;
      id.line = line_number;
      rows.push_back(parser.Parse(line, id));
    } catch (const RowError& error) {
      throw ConfigError("--dataset " + path + ": line " + std::to_string(line_number) + ": " + error.what());
    }
  }
  if (rows.empty()) throw ConfigError("--dataset " + path + ": contains no prompt");
  return rows;
}

}  // namespace vllm::app
