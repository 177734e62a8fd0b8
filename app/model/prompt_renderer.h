// PromptRenderer: a chat template with the special tokens of its model, its variables and an optional fixed date. Owned
// by LoadedModel or by the command. Any thread, but not while SetThinkVariables or SetTools runs.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/jinja/chat_template.h"

namespace vllm::app {

class PromptRenderer {
 public:
  // `now` is the time that strftime_now formats; nullopt means the current time. `variables_json` is a JSON object of
  // further template variables, or empty. Throws ChatTemplateError.
  PromptRenderer(tokenizer::ChatTemplateSource source, std::optional<std::string> now, std::string variables_json = "");

  // Returns another renderer in the same state. Throws ChatTemplateError.
  std::unique_ptr<PromptRenderer> Copy() const;

  // Sets the template variables that switch thinking, as the text of a JSON object or "". Those of `variables_json`
  // take precedence over them.
  void SetThinkVariables(std::string variables_json);
  // Sets the template variable `tools`, as the text of a JSON array or "". If there are tools, prompts are rendered
  // with the model's template for tool use, if it has one. Tools in `variables_json` or in a rendered context take
  // precedence over these.
  void SetTools(std::string tools_json);
  // Returns all template variables as the text of a JSON object, or "".
  const std::string& variables() const { return all_variables_json_; }
  // Returns true if a template reads the variable.
  bool UsesVariable(std::string_view name) const;

  // Returns the prompt text. Throws ChatTemplateError.
  std::string Render(std::span<const tokenizer::ChatMessage> messages, bool add_generation_prompt) const;
  // Renders with the template variables in `context_json`, such as {"messages":[...],"tools":[...]}, which override
  // those of variables_json. If `has_tools`, uses the model's template for tool use, if it has one. Throws
  // ChatTemplateError.
  std::string RenderJson(std::string_view context_json, bool has_tools) const;

  // Returns true if a system message reaches the prompt. Some templates reject one, others omit it silently.
  bool takes_system_message() const { return takes_system_message_; }

  const tokenizer::ChatTemplateSource& source() const { return source_; }

 private:
  tokenizer::RenderOptions Options(bool add_generation_prompt) const;
  void UpdateVariables();
  const tokenizer::ChatTemplate& TemplateFor(bool has_tools) const;

  tokenizer::ChatTemplateSource source_;
  std::optional<std::string> now_;
  std::string variables_json_;
  std::string think_json_;
  std::string tools_json_;
  std::string all_variables_json_;
  std::unique_ptr<tokenizer::ChatTemplate> chat_template_;
  std::unique_ptr<tokenizer::ChatTemplate> tool_use_template_;  // null: use chat_template_
  bool takes_system_message_;
};

}  // namespace vllm::app
