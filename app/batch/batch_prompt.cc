#include "app/batch/batch_prompt.h"

#include <string>
#include <utility>

#include "app/presets/preset.h"
#include "engine/config/errors.h"

namespace vllm::app {

std::optional<PresetPrompt> PromptOf(Settings& settings) {
  std::optional<PresetPrompt> preset = PresetOf(settings);
  const std::optional<std::string> text = settings.Text("prompt");
  if (!text) return preset;
  if (preset && preset->preset().prompt) throw ConfigError("--prompt: the preset has a prompt too; use one of them");
  const std::string variable = "{" + std::string(kInputName) + "}";
  std::string escaped;
  for (size_t at = 0; at < text->size();) {
    if (text->compare(at, variable.size(), variable) == 0) {
      escaped += variable;
      at += variable.size();
      continue;
    }
    const char c = (*text)[at++];
    escaped.append(c == '{' || c == '}' ? 2 : 1, c);
  }
  Preset own = preset ? preset->preset() : Preset();
  own.prompt.emplace(escaped, "--prompt");
  return PresetPrompt(std::move(own), {});
}

}  // namespace vllm::app
