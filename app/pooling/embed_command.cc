#include <deque>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/size_text.h"
#include "app/pooling/pooling_commands.h"
#include "app/pooling/pooling_model.h"
#include "app/pooling/pooling_runner.h"
#include "app/pooling/text_input.h"
#include "app/pooling/vector_writer.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

VectorFormat FormatOf(const Settings& settings, const std::string& path) {
  const std::string name = settings.Text("vector-format").value_or("");
  if (name == "npy" || (name.empty() && path.ends_with(".npy"))) return VectorFormat::kNpy;
  const bool is_database = path.ends_with(".sqlite") || path.ends_with(".sqlite3") || path.ends_with(".db");
  if (name == "sqlite" || (name.empty() && is_database)) return VectorFormat::kSqlite;
  return VectorFormat::kJsonLines;
}

TextInput::Form FormOf(const Settings& settings) {
  if (settings.Switch("jsonl") && settings.Switch("whole-files")) {
    throw ConfigError("--whole-files: not possible with --jsonl, where each line is a text");
  }
  if (settings.Switch("whole-files")) return TextInput::Form::kWholeFiles;
  return settings.Switch("jsonl") ? TextInput::Form::kJsonLines : TextInput::Form::kLines;
}

// Returns the text of a line: a string, or the "text", "input" or "content" of an object.
std::string TextOf(const TextItem& item) {
  if (item.value.is_string()) return item.value.get<std::string>();
  if (item.value.is_object()) {
    for (const char* name : {"text", "input", "content"}) {
      if (item.value.contains(name) && item.value[name].is_string()) return item.value[name].get<std::string>();
    }
  }
  throw ModelError("embed: a line of JSON must be a string, or an object with a string \"text\"");
}

}  // namespace

int EmbedCommand(const Settings& settings) {
  const std::string path = settings.Text("output").value_or("");
  const VectorFormat format = FormatOf(settings, path);
  if (settings.Switch("whole-files") && settings.arguments.empty()) throw ConfigError("--whole-files: needs files");
  TextInput input(settings.arguments, FormOf(settings));
  PoolingModel model(settings, /*scores_pairs=*/false);
  const FloatFormat floats =
      settings.Text("encoding-format").value_or("float") == "base64" ? FloatFormat::kBase64 : FloatFormat::kFloat;
  const std::unique_ptr<VectorWriter> writer = MakeVectorWriter(format, path, settings.Switch("overwrite"), floats,
                                                                model.prompts().vector_size(), model.location().name);
  PrintStatus("embed: " + model.prompts().Describe());

  std::deque<std::pair<Json, std::string>> waiting;  // ids and texts whose results have not come
  int64_t num_done = 0;
  ProgressLine progress(std::chrono::milliseconds(300));
  const int64_t num_failed = RunPooling(
      model, input,
      [&](int64_t /*index*/, TextItem& item) {
        waiting.emplace_back(std::move(item.id), TextOf(item));
        return model.prompts().Embed(waiting.back().second);
      },
      [&](PooledResult& result) {
        const auto& [id, text] = waiting.front();
        if (!result.error.empty()) PrintError("text " + std::to_string(result.index + 1) + ": " + result.error);
        writer->Write({result.index, &id, text, result.values, result.num_tokens, result.error});
        waiting.pop_front();
        ++num_done;
        if (!path.empty() && progress.enabled() && progress.IsDue()) {
          progress.Show("embed: " + GroupedText(num_done) + " texts");
        }
      });
  progress.Clear();
  writer->Finish();
  model.prompts().WarnOfCutTexts();
  return num_failed > 0 ? 1 : 0;
}

}  // namespace vllm::app
