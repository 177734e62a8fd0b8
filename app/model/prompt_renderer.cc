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

std::unique_ptr<PromptRenderer> PromptRenderer::Copy() const {
  auto copy = std::make_unique<PromptRenderer>(source_, now_, variables_json_);
  copy->think_json_ = think_json_;
  copy->tools_json_ = tools_json_;
  copy->UpdateVariables();
  return copy;
}

void PromptRenderer::SetThinkVariables(std::string variables_json) {
  think_json_ = std::move(variables_json);
  UpdateVariables();
}

void PromptRenderer::SetTools(std::string tools_json) {
  tools_json_ = std::move(tools_json);
  UpdateVariables();
}

void PromptRenderer::UpdateVariables() {
  all_variables_json_ = variables_json_;
  if (think_json_.empty() && tools_json_.empty()) return;
  using Json = nlohmann::ordered_json;
  Json all = think_json_.empty() ? Json::object() : Json::parse(think_json_);
  if (!tools_json_.empty()) all["tools"] = Json::parse(tools_json_);
  if (!variables_json_.empty()) all.update(Json::parse(variables_json_));
  all_variables_json_ = DumpJson(all);
}

const tokenizer::ChatTemplate& PromptRenderer::TemplateFor(bool has_tools) const {
  return has_tools && tool_use_template_ ? *tool_use_template_ : *chat_template_;
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
  return TemplateFor(!tools_json_.empty()).Render(messages, Options(add_generation_prompt));
}

std::string PromptRenderer::RenderJson(std::string_view context_json, bool has_tools) const {
  return TemplateFor(has_tools || !tools_json_.empty()).RenderJson(context_json, Options(true));
}

}  // namespace vllm::app
