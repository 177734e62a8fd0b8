#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/commands/models/models_actions.h"
#include "app/installed/find_model.h"
#include "app/installed/last_use.h"
#include "app/installed/list_models.h"
#include "app/installed/model_aliases.h"
#include "app/installed/model_type.h"
#include "app/output/json_text.h"
#include "app/output/list_text.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/text_width.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

struct Row {
  InstalledModel model;
  std::string type;
  std::optional<int64_t> last_use_ms;
  bool is_default = false;
  std::vector<std::string> aliases;
};

// Returns the path of a model, or "" if it is not installed.
std::string PathOf(const std::string& name) {
  try {
    return FindModel(name).path();
  } catch (const ModelError&) {
    return "";
  }
}

std::vector<Row> ReadRows(const std::string& default_path) {
  std::vector<Row> rows;
  for (InstalledModel& model : ListModels()) {
    Row row;
    row.type = ModelType(model.location);
    row.last_use_ms = LastUseMs(model.location);
    row.is_default = model.problem.empty() && model.location.path() == default_path;
    row.model = std::move(model);
    rows.push_back(std::move(row));
  }
  for (const ModelAlias& alias : ReadModelAliases()) {
    const std::string path = PathOf(alias.name);
    for (Row& row : rows) {
      if (!path.empty() && row.model.problem.empty() && row.model.location.path() == path) {
        row.aliases.push_back(alias.name);
      }
    }
  }
  return rows;
}

Json JsonOf(const Row& row) {
  const ModelLocation& location = row.model.location;
  return {{"name", location.name},
          {"type", row.type},
          {"bytes", row.model.bytes},
          {"last_used_ms", row.last_use_ms ? Json(*row.last_use_ms) : Json()},
          {"is_default", row.is_default},
          {"aliases", row.aliases},
          {"directory", location.path()},
          {"origin", location.origin},
          {"repository", location.repo_id.empty() ? Json() : Json(location.repo_id)},
          {"problem", row.model.problem.empty() ? Json() : Json(row.model.problem)}};
}

// Returns what a line says after its columns: the origin unless it is the usual one, the aliases and a problem.
std::string NotesOf(const Row& row) {
  std::string notes;
  const auto add = [&](const std::string& note) { notes += (notes.empty() ? "" : ", ") + note; };
  if (!row.model.problem.empty()) add(row.model.problem);
  for (const std::string& alias : row.aliases) add("alias " + alias);
  if (row.model.location.origin != kHubCacheOrigin) add(row.model.location.origin);
  return notes;
}

void PrintTable(const std::vector<Row>& rows) {
  std::vector<std::vector<std::string>> table = {{"NAME", "SIZE", "TYPE", "LAST USED", ""}};
  for (const Row& row : rows) {
    table.push_back({std::string(SafeLine(row.model.location.name).view()), SizeText(row.model.bytes), row.type,
                     row.last_use_ms ? LocalTimeText(*row.last_use_ms) : "-",
                     std::string(SafeLine(NotesOf(row)).view())});
  }
  std::vector<int> widths(table[0].size(), 0);
  for (const std::vector<std::string>& cells : table) {
    for (size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], TextColumns(cells[i]));
  }
  std::string out;
  for (size_t i = 0; i < table.size(); ++i) {
    std::string line = i > 0 && rows[i - 1].is_default ? "* " : "  ";
    for (size_t column = 0; column < widths.size(); ++column) {
      const std::string& cell = table[i][column];
      const std::string padding(static_cast<size_t>(widths[column] - TextColumns(cell)), ' ');
      line += column == 1 ? padding + cell : cell + padding;
      line += "  ";
    }
    line.resize(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  StandardOutput().Write(SafeText(out));
}

// Returns true if no shell changes the word, so that the completions can offer it.
bool IsPlainWord(std::string_view word) {
  return !word.empty() && word.front() != '-' && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-/:@+,").find(c) != std::string_view::npos;
  });
}

int PrintNames() {
  std::string out;
  for (const InstalledModel& model : ListModels()) {
    if (IsPlainWord(model.location.name)) out += model.location.name + "\n";
  }
  for (const ModelAlias& alias : ReadModelAliases()) out += alias.name + "\n";
  StandardOutput().Write(SafeText(out));
  return 0;
}

}  // namespace

int ListModelsAction(const Settings& settings) {
  if (settings.Switch("names")) return PrintNames();
  const std::string default_name = settings.Text("model").value_or("");
  const std::string default_path = PathOf(default_name);
  const std::vector<Row> rows = ReadRows(default_path);
  if (settings.Switch("json")) {
    Json list = Json::array();
    for (const Row& row : rows) list.push_back(JsonOf(row));
    StandardOutput().WriteLine(SafeJson(DumpJson(list)));
    return 0;
  }
  PrintTable(rows);
  if (default_path.empty() && !default_name.empty()) PrintStatus("the default, " + default_name + ", is not installed");
  return 0;
}

}  // namespace vllm::app
