#include "tokenizer/jinja/chat_template.h"

#include <ctime>

#include "tokenizer/jinja/builtins/globals.h"
#include "tokenizer/jinja/builtins/strftime.h"
#include "tokenizer/jinja/eval/evaluator.h"
#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/syntax/lexer.h"
#include "tokenizer/jinja/syntax/parser.h"
#include "tokenizer/jinja/values/json_text.h"

namespace vllm::tokenizer {

struct ChatTemplate::Program {
  jinja::Template tree;
};

namespace {

using jinja::Budget;
using jinja::DictObject;
using jinja::Kind;
using jinja::Value;

std::string WithLine(int line, const char* why) {
  return "chat template line " + std::to_string(line) + ": " + jinja::EscapeForError(why);
}

std::tm Now(const RenderOptions& options) {
  std::tm result{};
  if (options.now) {
    if (!jinja::ParseDate(*options.now, result)) {
      throw ChatTemplateError("chat template: invalid date \"" + jinja::EscapeForError(*options.now) +
                              "\" (expected a date like 2024-07-26 or 2024-07-26T15:04:05)");
    }
    return result;
  }
  const std::time_t seconds = std::time(nullptr);
  localtime_r(&seconds, &result);
  return result;
}

// Collects the variables of a rendering. Setting a variable again replaces its value.
class Context {
 public:
  explicit Context(Budget& budget) : budget_(budget), dict_(std::make_shared<DictObject>()) {}

  void Set(const char* name, Value value) { dict_->Set(jinja::MakeString(&budget_, name), std::move(value)); }

  void SetDefaults(const RenderOptions& options) {
    Set("tools", Value::None());
    Set("documents", Value::None());
    Set("add_generation_prompt", Value::Bool(options.add_generation_prompt));
    if (!options.bos_token.empty()) Set("bos_token", jinja::MakeString(&budget_, options.bos_token));
    if (!options.eos_token.empty()) Set("eos_token", jinja::MakeString(&budget_, options.eos_token));
  }

  void SetMessages(std::span<const ChatMessage> messages) {
    std::vector<Value> list;
    list.reserve(messages.size());
    for (const ChatMessage& message : messages) {
      auto dict = std::make_shared<DictObject>();
      dict->Set(jinja::MakeString(&budget_, "role"), jinja::MakeString(&budget_, message.role));
      dict->Set(jinja::MakeString(&budget_, "content"), jinja::MakeString(&budget_, message.content));
      if (!message.reasoning_content.empty()) {
        // Templates of different models read it under different names.
        for (const char* name : {"reasoning_content", "reasoning", "thinking"}) {
          dict->Set(jinja::MakeString(&budget_, name), jinja::MakeString(&budget_, message.reasoning_content));
        }
      }
      const auto set = [&](const char* key, Value value) {
        dict->Set(jinja::MakeString(&budget_, key), std::move(value));
      };
      if (!message.tool_calls_json.empty()) {
        set("tool_calls", jinja::ParseJson(budget_, message.tool_calls_json, "tool_calls"));
      }
      if (!message.tool_call_id.empty()) set("tool_call_id", jinja::MakeString(&budget_, message.tool_call_id));
      if (!message.name.empty()) set("name", jinja::MakeString(&budget_, message.name));
      list.push_back(jinja::MakeDict(&budget_, std::move(dict)));
    }
    Set("messages", jinja::MakeSequence(&budget_, Kind::kList, std::move(list)));
  }

  void Merge(std::string_view json, const char* what) {
    if (json.empty()) return;
    const Value object = jinja::ParseJson(budget_, json, what);
    if (!object.is(Kind::kDict)) throw jinja::EvalError(std::string(what) + ": not a JSON object");
    for (const auto& [key, value] : object.dict().items) dict_->Set(key, value);
  }

  Value Take() { return jinja::MakeDict(&budget_, std::move(dict_)); }

 private:
  Budget& budget_;
  std::shared_ptr<DictObject> dict_;
};

template <typename Fill>
std::string RenderWith(const jinja::Template& tree, const RenderOptions& options, Fill fill) {
  jinja::Runtime runtime;
  runtime.now = Now(options);
  Value variables;
  try {
    Context context(runtime.budget);
    fill(context);
    variables = context.Take();
  } catch (const jinja::EvalError& error) {
    throw ChatTemplateError(std::string("chat template: ") + error.what());
  }
  jinja::Evaluator evaluator(tree, runtime, std::move(variables));
  try {
    return evaluator.Run();
  } catch (const jinja::EvalError& error) {
    throw ChatTemplateError(WithLine(evaluator.line(), error.what()));
  }
}

}  // namespace

ChatTemplate::ChatTemplate(std::string source, std::unique_ptr<Program> program)
    : source_(std::move(source)), program_(std::move(program)) {}
ChatTemplate::~ChatTemplate() = default;

std::unique_ptr<ChatTemplate> ChatTemplate::Parse(std::string source) {
  try {
    auto program = std::make_unique<Program>();
    program->tree = jinja::ParseTemplate(source);
    return std::unique_ptr<ChatTemplate>(new ChatTemplate(std::move(source), std::move(program)));
  } catch (const jinja::SyntaxError& error) {
    throw ChatTemplateError(WithLine(error.line, error.what()));
  }
}

std::string ChatTemplate::Render(std::span<const ChatMessage> messages, const RenderOptions& options) const {
  return RenderWith(program_->tree, options, [&](Context& context) {
    context.SetDefaults(options);
    context.SetMessages(messages);
    context.Merge(options.extra_json, "extra variables");
  });
}

std::string ChatTemplate::RenderJson(std::string_view context_json, const RenderOptions& defaults) const {
  return RenderWith(program_->tree, defaults, [&](Context& context) {
    context.SetDefaults(defaults);
    context.Merge(defaults.extra_json, "extra variables");
    if (context_json.empty()) throw jinja::EvalError("context: not a JSON object");
    context.Merge(context_json, "context");
  });
}

bool ChatTemplate::KeepsSystemMessage(const RenderOptions& options) const {
  constexpr std::string_view kProbe = "system-probe-5c1f";
  const ChatMessage messages[] = {{"system", std::string(kProbe)}, {"user", "probe"}};
  try {
    return Render(messages, options).find(kProbe) != std::string::npos;
  } catch (const ChatTemplateError&) {
    return false;
  }
}

bool ChatTemplate::UsesVariable(std::string_view name) const {
  return jinja::LooksUp(program_->tree, std::string(name));
}

}  // namespace vllm::tokenizer
