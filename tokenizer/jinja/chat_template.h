// The chat template of a model: Jinja2 source that renders messages to the prompt text. It renders like Hugging Face
// transformers (trim_blocks, lstrip_blocks, break/continue, {% generation %}, strftime_now, raise_exception, and a
// tojson that escapes neither HTML nor non-ASCII characters). Owned by the caller of Parse. A ChatTemplate is
// immutable, and any number of threads may use it at once. Templates are untrusted: they can do no I/O, and their
// operations, memory, nesting and output are limited (jinja::Budget, jinja::Evaluator).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vllm::tokenizer {

// what() is "chat template line N: why", "chat template: why" or "cannot read the chat template from PATH: why".
class ChatTemplateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct ChatMessage {
  std::string role;
  std::string content;
  std::string reasoning_content = {};  // of an assistant; templates decide which turns' thoughts they write
  std::string tool_calls_json = {};    // of an assistant: a JSON array in OpenAI's format, or ""
  std::string tool_call_id = {};       // of a tool's result: the call that it answers
  std::string name = {};               // of a tool's result: the name of the tool
};

struct RenderOptions {
  bool add_generation_prompt = true;
  // If a token is empty, the template variable of the same name is undefined.
  std::string bos_token, eos_token;
  // The time for strftime_now: "2024-07-26" or "2024-07-26T15:04:05". The current local time if absent.
  std::optional<std::string> now;
  // More variables, as the text of a JSON object. May be empty.
  std::string extra_json;
};

class ChatTemplate {
 public:
  // Throws ChatTemplateError if the source is not a valid template.
  static std::unique_ptr<ChatTemplate> Parse(std::string source);
  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // Returns the prompt. The template's variables are messages, add_generation_prompt, bos_token, eos_token,
  // tools (None), documents (None), and the variables of extra_json, which override the others. Throws
  // ChatTemplateError if rendering fails, for example because the template rejects the messages (raise_exception).
  std::string Render(std::span<const ChatMessage> messages, const RenderOptions& options) const;

  // Like Render, but takes the variables, including messages, from the JSON object `context_json`. Dicts keep the key
  // order of the JSON text. `defaults` sets the variables that are missing in `context_json`.
  std::string RenderJson(std::string_view context_json, const RenderOptions& defaults) const;

  // Returns true if the template renders system messages. Renders a probe message and searches the prompt for it.
  // Returns false if the template rejects the probe.
  bool KeepsSystemMessage(const RenderOptions& options) const;
  // Returns true if the template may read this variable ("tools", "enable_thinking", ...) of those that it is rendered
  // with. Variables of the template with the same name, such as a parameter of a macro, do not count.
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
  std::string tool_use_text;  // the template for requests with tools; if empty, use `text`
  std::string origin;         // path of the file that contains `text`
};

// Finds the chat template of a Hugging Face model directory. Tries chat_template.jinja (with
// additional_chat_templates/tool_use.jinja), then "chat_template" in chat_template.json, then in tokenizer_config.json.
// The value of "chat_template" is a string, or a list of {name, template} in which "default" and "tool_use" are used.
// bos_token and eos_token are from tokenizer_config.json, or else from special_tokens_map.json. Returns nullopt if the
// directory has no default template. Throws ChatTemplateError if a file is damaged or cannot be read.
std::optional<ChatTemplateSource> FindChatTemplate(const std::string& model_directory);

}  // namespace vllm::tokenizer
