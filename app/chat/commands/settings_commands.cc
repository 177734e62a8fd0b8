#include "app/chat/commands/settings_commands.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>
#include <vector>

#include "app/chat/commands/display_commands.h"
#include "app/cli/wrap_words.h"
#include "app/installed/weight_summary.h"
#include "app/model/structured_outputs_setting.h"
#include "app/output/request_stats.h"
#include "app/output/size_text.h"
#include "app/terminal/output_stream.h"
#include "app/terminal/progress_line.h"
#include "engine/config/errors.h"
#include "engine/lora/lora_adapter.h"

namespace vllm::app {
namespace {

// Prints the value and the source of the setting called `name`, or of all settings if `name` is empty.
void PrintSettings(ChatSession& session, const std::string& name) {
  const Flag* flag = FindFlag(name);  // accepts top_p for top-p
  bool found = false;
  std::vector<SamplingValue> values = session.model().sampling_values;
  for (const auto& [other, fallback] :
       {std::pair{"context-shift", "half"}, {"think", "as the template decides"}, {"show-thinking", "summary"}}) {
    values.push_back({other, session.settings().Text(other).value_or(fallback),
                      std::string(SettingSourceName(session.settings().SourceOf(other)))});
  }
  for (const SamplingValue& value : values) {
    if (!name.empty() && (flag == nullptr || value.name != flag->name)) continue;
    found = true;
    std::string line = "  " + value.name;
    line.append(line.size() < 30 ? 30 - line.size() : 1, ' ');
    line += value.value == "null" || value.value == "[]" ? "none" : value.value;
    line.append(line.size() < 40 ? 40 - line.size() : 1, ' ');
    PrintNote(line + "(" + value.source + ")");
  }
  if (!found) PrintError(UnknownSettingText(name));
  if (!name.empty()) return;
  for (const std::string_view setting : kDisplaySettings) SetDisplay(std::string(setting), "", session);
}

// Returns the text of /info about the turns that the context does not contain, and the policy.
std::string OutsideText(const ChatSession& session) {
  const int64_t num_dropped = session.num_dropped_turns();
  const std::string turns = num_dropped == 0   ? "no turns"
                            : num_dropped == 1 ? "the oldest turn"
                                               : "the oldest " + std::to_string(num_dropped) + " turns";
  return turns + " (context-shift " + session.settings().Text("context-shift").value_or("half") + ")";
}

// Returns true if the model has answered since the program began.
bool HasAnswer(const ChatSession& session) { return session.last_stats().num_prompt_tokens > 0; }

}  // namespace

SlashResult LoRACommand(const std::string& arguments, ChatSession& session) {
  if (!arguments.empty()) {
    try {
      session.SetLoRA(arguments == "off" ? "" : arguments);
    } catch (const ModelError& error) {
      PrintError(error.what(), error.hint());
      return {};
    }
    PrintNote(session.lora().empty() ? "[answers of the base model]"
                                     : "[answers with the adapter " + session.lora() + "]");
    return {};
  }
  const auto adapters = NamedAdapters(session.model().engine->config().lora.adapters);
  if (adapters.empty()) PrintNote("[no adapters; load one with /lora NAME=PATH]");
  for (const auto& adapter : adapters) {
    PrintNote((adapter->name == session.lora() ? "* " : "  ") + adapter->name + "  " + adapter->path);
  }
  return {};
}

SlashResult SystemCommand(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    PrintNoteLines(session.system().empty() ? "[no system message]" : session.system());
  } else if (!session.model().renderer->takes_system_message()) {
    PrintError("the chat template does not support a system message");
  } else {
    session.BeginWithSystem(arguments);
    PrintNote("[system message set; a new conversation begins]");
  }
  return {};
}

SlashResult SetCommand(const std::string& arguments, ChatSession& session) {
  const size_t gap = arguments.find_first_of(" \t");
  const std::string value = gap == std::string::npos
                                ? ""
                                : arguments.substr(std::min(arguments.find_first_not_of(" \t", gap), arguments.size()));
  if (SetDisplay(arguments.substr(0, gap), value, session)) return {};
  if (gap == std::string::npos) {
    PrintSettings(session, arguments);
  } else {
    session.Set(arguments.substr(0, gap), value);
  }
  return {};
}

SlashResult SchemaCommand(const std::string& arguments, ChatSession& session) {
  if (arguments.empty()) {
    for (const char* name : {"schema", "json-schema"}) PrintSettings(session, name);
    return {};
  }
  std::error_code ignored;
  const bool is_schema = arguments == "off" || arguments.starts_with('{') ||
                         IsFileName(arguments.substr(0, arguments.find_first_of(" \t,:"))) ||
                         std::filesystem::exists(arguments, ignored);
  session.Set(is_schema ? "json-schema" : "schema", arguments);
  PrintNote(arguments == "off" ? "[answers are free again]" : "[answers are JSON of this schema]");
  return {};
}

// Returns "bfloat16", "Q4_K_M" or "bfloat16 quantized to int4".
std::string WeightsText(const ChatSession& session) {
  const ModelConfig& model = session.model().engine->config().model;
  const std::string dtype(ToString(model.dtype));
  if (model.quantization.quantizes_at_load()) {
    return dtype + " quantized to " + std::string(ToString(model.quantization.method));
  }
  try {
    const std::string quantization = SummarizeWeights(session.model().location, model).quantization;
    return quantization == "none" ? dtype : quantization;
  } catch (const std::exception&) {  // The files have changed since they were loaded.
    return dtype;
  }
}

SlashResult InfoCommand(const std::string&, ChatSession& session) {
  const VllmConfig& config = session.model().engine->config();
  const ModelLocation& location = session.model().location;
  PrintNote("  model    " + location.name + (location.name == location.path() ? "" : " (" + location.path() + ")"));
  PrintNote("  kind     " + config.model.architecture + ", " + WeightsText(session));
  PrintNote("  context  " + std::to_string(session.model().engine->max_model_len()) + " tokens, " +
            std::to_string(session.num_tokens()) + " in use, " + CountedText(session.num_turns(), "turn"));
  PrintNote("  outside  " + OutsideText(session));
  const SchedulerStats& stats = session.model().engine->stats();
  const RequestStats& last = session.last_stats();
  const std::string cached = std::to_string(last.num_cached_tokens) + " of the last " +
                             std::to_string(last.num_prompt_tokens) + " prompt tokens; ";
  PrintNote("  cached   " + (HasAnswer(session) ? cached : "") + PercentText(stats.kv_cache_usage) +
            " of the KV cache (" + std::to_string(config.cache.num_blocks) + " blocks) in use");
  if (!session.lora().empty()) PrintNote("  adapter  " + session.lora());
  if (session.preset()) PrintNote("  preset   " + session.preset()->preset().name);
  PrintNote("  template " + session.model().renderer->source().origin);
  const int64_t id = session.tree().chat_id();
  if (id != 0) {
    PrintNote("  stored   conversation " + std::to_string(id) + " in " + session.store()->path());
  } else {
    PrintNote(session.store() == nullptr ? "  stored   no" : "  stored   with the first message");
  }
  return {};
}

SlashResult StatsCommand(const std::string&, ChatSession& session) {
  // Lines for a script are not wrapped.
  const size_t width = isatty(STDERR_FILENO) == 1 ? static_cast<size_t>(TerminalColumns(STDERR_FILENO)) : SIZE_MAX;
  std::string text;
  AppendWrapped(HasAnswer(session) ? RequestStatsText(session.last_stats()) : "no answer yet", 2, 0, width, text);
  for (const std::string& line : StatsLines(*session.model().engine)) AppendWrapped(line, 2, 0, width, text);
  text.pop_back();
  PrintNoteLines(text);
  return {};
}

}  // namespace vllm::app
