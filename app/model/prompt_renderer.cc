#include "app/model/prompt_renderer.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"

namespace vllm::app {

PromptRenderer::PromptRenderer(tokenizer::ChatTemplateSource source, std::optional<std::string> now,
                               std::string variables_json)
    : source_(std::move(source)),
      now_(std::move(now)),
      variables_json_(std::move(variables_json)),
      all_variables_json_(variables_json_),
      chat_template_(tokenizer::ChatTemplate::Parse(source_.text)),
      takes_system_message_(chat_template_->KeepsSystemMessage(Options(true))) {
  if (!source_.tool_use_text.empty()) tool_use_template_ = tokenizer::ChatTemplate::Parse(source_.tool_use_text);
}

void PromptRenderer::SetThinkVariables(std::string variables_json) {
  all_variables_json_ = variables_json_;
  if (variables_json.empty()) return;
  if (variables_json_.empty()) {
    all_variables_json_ = std::move(variables_json);
    return;
  }
  nlohmann::ordered_json all = nlohmann::ordered_json::parse(variables_json);
  all.update(nlohmann::ordered_json::parse(variables_json_));
  all_variables_json_ = DumpJson(all);
}

bool PromptRenderer::UsesVariable(std::string_view name) const {
  return chat_template_->UsesVariable(name) ||
         (tool_use_template_ != nullptr && tool_use_template_->UsesVariable(name));
}

tokenizer::RenderOptions PromptRenderer::Options(bool add_generation_prompt) const {
  tokenizer::RenderOptions options;
  options.add_generation_prompt = add_generation_prompt;
  options.bos_token = source_.bos_token;
  options.eos_token = source_.eos_token;
  options.now = now_;
  options.extra_json = all_variables_json_;
  return options;
}

std::string PromptRenderer::Render(std::span<const tokenizer::ChatMessage> messages, bool add_generation_prompt) const {
  return chat_template_->Render(messages, Options(add_generation_prompt));
}

std::string PromptRenderer::RenderJson(std::string_view context_json, bool has_tools) const {
  const tokenizer::ChatTemplate& chosen = has_tools && tool_use_template_ ? *tool_use_template_ : *chat_template_;
  return chosen.RenderJson(context_json, Options(true));
}

}  // namespace vllm::app
