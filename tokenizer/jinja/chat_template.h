// A model's chat template: Jinja2 source that turns messages into the prompt text, as Hugging Face transformers
// renders it (trim_blocks, lstrip_blocks, break/continue, {% generation %}, tojson without escapes, strftime_now,
// raise_exception). A ChatTemplate is immutable after Parse; Render may run on any number of threads at once.
// A template is untrusted: no I/O, and operations, memory, nesting and output are bounded (chat_template/budget.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vllm {

// The text is "chat template line N: why", or names the file that cannot be read.
class ChatTemplateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ChatMessage {
  std::string role;
  std::string content;
};

struct RenderOptions {
  bool add_generation_prompt = true;
  // Left undefined in the template when empty.
  std::string bos_token, eos_token;
  // What strftime_now sees: "2024-07-26" or "2024-07-26T15:04:05"; the local time when absent.
  std::optional<std::string> now;
  // More variables: the text of a JSON object, or empty.
  std::string extra_json;
};

class ChatTemplate {
 public:
  // Throws ChatTemplateError.
  static std::unique_ptr<ChatTemplate> Parse(std::string source);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // The variables are messages, tools and documents (none), add_generation_prompt, bos_token, eos_token, and those of
  // extra_json, which win. Throws ChatTemplateError, also for what the template itself refuses (raise_exception).
  std::string Render(std::span<const ChatMessage> messages, const RenderOptions& options) const;

  // `context_json`: a JSON object of variables, key order kept; `defaults` fill in what it does not name.
  std::string RenderJson(std::string_view context_json, const RenderOptions& defaults) const;

  // Whether a system message reaches the prompt: a probe is rendered and searched for.
  bool KeepsSystemMessage(const RenderOptions& options) const;
  // Whether the template reads the variable somewhere and does not set it first ("tools", "enable_thinking", ...).
  bool UsesVariable(std::string_view name) const;

  const std::string& source() const { return source_; }

 private:
  struct Program;
  ChatTemplate(std::string source, std::unique_ptr<Program> program);

  std::string source_;
  std::unique_ptr<const Program> program_;
};

struct ChatTemplateSource {
  std::string text, bos_token, eos_token;
  std::string tool_use_text;  // the one to take when there are tools; empty: the same
  std::string origin;         // the file it is from
};

// The chat template of a model directory: chat_template.jinja (with additional_chat_templates/tool_use.jinja), else
// "chat_template" of chat_template.json, else of tokenizer_config.json (a string, or a list of {name, template} of
// which "default" and "tool_use" count). Special tokens: tokenizer_config.json, else special_tokens_map.json. Nothing
// when the directory has no template; throws ChatTemplateError for a damaged file.
std::optional<ChatTemplateSource> FindChatTemplate(const std::string& model_directory);

}  // namespace vllm
