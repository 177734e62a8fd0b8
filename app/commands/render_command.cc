#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/batch/input/record_reader.h"
#include "app/commands/commands.h"
#include "app/model/model_files.h"
#include "app/output/json_text.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

Json ParseInput(std::string_view text, const std::string& name) {
  Json json;
  const std::string error = ParseJsonText(text, json);
  if (!error.empty()) throw ModelError("render " + name + ": " + error);
  return json;
}

std::string RenderOne(const PromptRenderer& renderer, Json context) {
  if (context.is_array()) context = Json({{"messages", std::move(context)}});
  if (!context.is_object()) throw ModelError("render: the context must be an object or an array of messages");
  const bool has_tools = context.contains("tools") && !context["tools"].is_null();
  return renderer.RenderJson(DumpJson(context), has_tools);
}

// Returns the special token that `line` sets in the field `name`, such as "bos_token", or an empty string.
std::string TokenOf(const Json& line, const char* name) {
  const auto token = line.find(name);
  return token != line.end() && token->is_string() ? token->get<std::string>() : std::string();
}

Json RenderLine(const Json& line, const PromptRenderer* fallback, const Settings& settings) {
  Json result;
  try {
    if (!line.is_object() || !line.contains("context")) {
      throw ModelError("the line must be an object with a context field");
    }
    if (!line.contains("chat_template")) {
      if (fallback == nullptr)
        throw ModelError("chat_template is missing; add it, or pass --chat-template or a model with a chat template");
      result["text"] = RenderOne(*fallback, line["context"]);
      return result;
    }
    if (!line["chat_template"].is_string()) throw ModelError("chat_template must be a string");
    tokenizer::ChatTemplateSource source;
    source.text = line["chat_template"].get<std::string>();
    source.bos_token = TokenOf(line, "bos_token");
    source.eos_token = TokenOf(line, "eos_token");
    const PromptRenderer renderer(std::move(source), settings.Text("now"), TemplateVariables(settings));
    result["text"] = RenderOne(renderer, line["context"]);
  } catch (const ModelError& error) {
    result = Json({{"error", error.what()}});
  } catch (const tokenizer::ChatTemplateError& error) {
    result = Json({{"error", error.what()}});
  }
  return result;
}

int RenderLines(const Settings& settings, const std::string& path) {
  // The template for lines without a chat_template field. Null if neither --chat-template nor a model with a template
  // is set.
  std::unique_ptr<PromptRenderer> fallback;
  if (settings.Has("model") || settings.Has("chat-template")) {
    fallback = LoadPromptRenderer(settings, LocateModel(settings));
  }
  tokenizer::RegularFile file;
  if (path != "-") {
    file = tokenizer::OpenRegularFile(path);
    if (file.is_out_of_resources()) throw ResourceError("render " + path + ": " + file.error);
    if (!file.ok()) throw ModelError("render " + path + ": " + file.error);
  }
  const int fd = path == "-" ? STDIN_FILENO : file.fd.get();
  RecordReader reader(fd, path, '\0');
  std::string_view record;
  while (true) {
    const RecordReader::Status status = reader.Next(record);
    if (status == RecordReader::Status::kEnd) break;
    if (status == RecordReader::Status::kNeedInput) {
      reader.Fill();
      continue;
    }
    if (status == RecordReader::Status::kRecord && record.empty()) continue;
    Json result;
    try {
      if (status == RecordReader::Status::kTooLong) throw ModelError("the line is too long (limit 64 MiB)");
      result = RenderLine(ParseInput(record, "line " + std::to_string(reader.line())), fallback.get(), settings);
    } catch (const ModelError& error) {
      result = Json({{"error", error.what()}});
    }
    StandardOutput().WriteLine(SafeJson(DumpJson(result)));
  }
  return 0;
}

}  // namespace

int RenderCommand(const Settings& settings) {
  if (settings.arguments.size() > 1) throw ConfigError("render: expects at most one FILE.json (- for standard input)");
  const std::string path = settings.arguments.empty() ? "-" : settings.arguments[0];
  if (settings.Switch("jsonl")) return RenderLines(settings, path);
  const ModelLocation location = LocateModel(settings);
  const std::unique_ptr<PromptRenderer> renderer = LoadPromptRenderer(settings, location);
  if (renderer == nullptr) {
    throw ModelError("model " + location.name + ": has no chat template", "--chat-template FILE sets one");
  }
  const std::string text = RenderOne(*renderer, ParseInput(ReadFileOrStdin(path, 64 << 20), path));
  if (settings.Switch("json")) {
    StandardOutput().WriteLine(SafeJson(DumpJson(Json({{"text", text}}))));
  } else {
    // The output is the exact prompt, so no line break is added.
    StandardOutput().Write(SafeText(text));
  }
  return 0;
}

}  // namespace vllm::app
