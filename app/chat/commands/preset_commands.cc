#include "app/chat/commands/preset_commands.h"

#include <vector>

#include "app/output/list_text.h"
#include "app/presets/preset_store.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxDescription = 100;  // characters

void PrintPresets(const ChatSession& session) {
  const std::string current = session.preset() ? session.preset()->preset().name : "";
  for (const PresetSummary& summary : ListPresets()) {
    std::string line = (summary.name == current ? "* " : "  ") + summary.name;
    line.append(line.size() < 20 ? 20 - line.size() : 1, ' ');
    line += FirstLine(SummaryText(summary), kMaxDescription);
    PrintNote(line);
  }
  PrintNote("/preset NAME begins a new conversation with one; /preset off ends its use.");
}

}  // namespace

SlashResult PresetCommand(const std::string& arguments, ChatSession& session) {
  const std::vector<std::string> words = SplitWords(arguments);
  if (words.empty()) {
    PrintPresets(session);
    return {};
  }
  const std::string& name = words[0];
  std::vector<std::string> assignments;
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i].find('=') == std::string::npos && !assignments.empty()) {
      assignments.back() += " " + words[i];
    } else {
      assignments.push_back(words[i]);
    }
  }
  if (name == "off") {
    session.UsePreset("", {});
    PrintNote("[no preset; a new conversation begins]");
    return {};
  }
  session.UsePreset(name, assignments);
  PrintPresetNotes(session);
  return {};
}

void PrintPresetNotes(const ChatSession& session) {
  const PresetPrompt& prompt = *session.preset();
  const Preset& preset = prompt.preset();
  PrintStatus("[preset " + preset.name + (preset.description.empty() ? "" : ": ") +
              FirstLine(preset.description, kMaxDescription) + "]");
  if (preset.prompt && !prompt.takes_input()) {
    PrintNote("[its prompt has no {input}, so a chat does not use the prompt]");
  }
  const bool names_model = session.settings().SourceOf("model") == SettingSource::kPreset;
  const std::string model = session.settings().Text("model").value_or("");
  if (names_model && model != session.model().location.name) {
    PrintNote("[it is for the model " + model + "; this chat continues with " + session.model().location.name + "]");
  }
}

}  // namespace vllm::app
