// The functions of ChatSession for its settings.
#include <optional>
#include <utility>

#include "app/chat/chat_session.h"
#include "app/chat/tool_use.h"
#include "app/cli/parse_value.h"
#include "app/installed/find_model.h"
#include "app/model/lora/lora_setting.h"
#include "app/model/structured_outputs_setting.h"
#include "app/model/tools_setting.h"
#include "app/terminal/output_stream.h"
#include "engine/config/errors.h"
#include "engine/lora/load_adapter.h"
#include "engine/lora/lora_adapter.h"

namespace vllm::app {

bool IsSettable(const Flag& flag) {
  if (!flag.belongs_to(Command::kChat)) return false;
  return flag.group == FlagGroup::kSampling || flag.name == "context-shift" || flag.name == "tool-choice";
}

std::vector<std::string> SettableNames() {
  std::vector<std::string> names;
  for (const Flag& flag : FlagTable()) {
    if (IsSettable(flag)) names.emplace_back(flag.name);
  }
  names.insert(names.end(), {"think", "show-thinking"});
  for (const std::string_view name : kDisplaySettings) names.emplace_back(name);
  return names;
}

std::string UnknownSettingText(const std::string& name) {
  const std::string near = NearestName(name, SettableNames());
  return "/set " + name + ": no such setting" +
         (near.empty() ? "; /set lists the settings" : "; did you mean " + near + "?");
}

void ChatSession::SetLoRA(const std::string& value) {
  const auto [name, path] = ParseLoRA(value, "/lora");
  const LoRAConfig& lora = model_.engine->config().lora;
  if (!path.empty()) {
    model_.engine->AddLoRA(LoadLoRAAdapter(name, FindAdapter(path), model_.engine->config().model, lora.max_lora_rank));
  } else if (!name.empty() && SlotOf(lora.adapters, name) < 0) {
    throw ConfigError("/lora: no adapter has this name (" + name + "; loaded: " + AdapterNames(lora.adapters) + ")",
                      "/lora NAME=PATH loads one.");
  }
  lora_ = name;
}

std::string ChatSession::lora() const { return lora_.value_or(model_.engine->config().lora.default_lora); }

Settings ChatSession::Changed(const std::vector<SettingChange>& changes) const {
  Settings changed = settings_;
  for (const auto& [name, value] : changes) {
    const Flag* flag = FindFlag(name);
    if (flag == nullptr || !IsSettable(*flag)) {
      throw ConfigError(UnknownSettingText(name));
    }
    changed.Set(*flag, {value}, SettingSource::kChat, "/set " + name);
    SwitchOffOthers(flag->name, SettingSource::kChat, changed);
  }
  return changed;
}

SamplingDefaults ChatSession::CheckedDefaults(const Settings& changed, const std::string& where) const {
  SamplingDefaults sampling = MakeSamplingDefaults(changed, ReadGenerationConfig(model_.location));
  SamplingParams checked = sampling.params;
  const VllmConfig& config = model_.engine->config();
  try {
    checked.Normalize(config.model.vocab_size, config.model.max_model_len, config.max_logprobs);
  } catch (const RequestError& error) {
    throw ConfigError(where + error.what());
  }
  sampling.params.output_kind = RequestOutputKind::kDelta;
  return sampling;
}

void ChatSession::UsePreset(const std::string& name, const std::vector<std::string>& assignments) {
  Settings changed = settings_;
  changed.Remove(SettingSource::kPreset);
  std::optional<PresetPrompt> preset;
  if (!name.empty()) {
    preset = app::UsePreset(name, assignments, changed);
    preset->CheckVariables();
  }
  const std::string where = name.empty() ? "sampling: " : "preset " + name + ": ";
  SamplingDefaults sampling = CheckedDefaults(changed, where);
  const std::string system = changed.Text("system").value_or("");
  if (!system.empty() && !model_.renderer->takes_system_message()) {
    throw ConfigError(where + "the chat template does not support a system message");
  }
  const bool changes_tools = changed.Text("tools") != settings_.Text("tools");
  std::unique_ptr<ToolUse> new_tools;
  if (tools_ == nullptr && HasRunnableTools(changed)) {
    new_tools = std::make_unique<ToolUse>(changed);
  }
  std::string definitions =
      tools_ == nullptr && new_tools == nullptr ? ReadTools(changed, *model_.renderer) : std::string();
  BeginWithSystem(system);  // may throw, so before any setting is changed
  if (tools_ != nullptr && changes_tools) tools_->Reload(changed);
  offers_tools_ = offers_tools_ || changes_tools;
  model_.renderer->SetTools(std::move(definitions));
  params_ = std::move(sampling.params);
  model_.sampling_values = std::move(sampling.values);
  settings_ = std::move(changed);
  preset_ = std::move(preset);
  if (new_tools != nullptr) {
    UseTools(std::move(new_tools));
  } else {
    ShowTools();
  }
}

std::string ChatSession::WithPreset(const std::string& message) const {
  const bool is_unchanged = next_parent_ && edits_whole_prompt_;
  return !preset_ || !preset_->takes_input() || is_unchanged ? message : preset_->Fill(message);
}

ContextShift ChatSession::context_shift() const {
  return settings_.Text("context-shift").value_or("half") == "off" ? ContextShift::kOff : ContextShift::kHalf;
}

void ChatSession::SetThink(const std::string& mode) {
  ThinkSwitch think = MakeThinkSwitch(ParseThinkMode(mode), *model_.renderer);
  settings_.Set(*FindFlag("think"), {mode}, SettingSource::kChat, "/set think");
  model_.renderer->SetThinkVariables(std::move(think.variables_json));
  if (!think.note.empty()) PrintNote("[" + think.note + "]");
}

void ChatSession::SetShowThinking(const std::string& mode) {
  ParseShowThinking(mode);
  settings_.Set(*FindFlag("show-thinking"), {mode}, SettingSource::kChat, "/set show-thinking");
}

ShowThinking ChatSession::show_thinking() const {
  if (!display_.answers || settings_.Text("think").value_or("") == "off") return ShowThinking::kHidden;
  return ParseShowThinking(settings_.Text("show-thinking").value_or("summary"));
}

void ChatSession::Set(const std::string& name, const std::string& value) {
  if (name == "think") return SetThink(value);
  if (name == "show-thinking" || name == "show_thinking") return SetShowThinking(value);
  Settings changed = Changed({{name, value}});
  CheckToolChoice(changed);
  SamplingDefaults sampling = CheckedDefaults(changed);
  params_ = std::move(sampling.params);
  model_.sampling_values = std::move(sampling.values);
  settings_ = std::move(changed);
}

}  // namespace vllm::app
