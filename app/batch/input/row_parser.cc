#include "app/batch/input/row_parser.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/input/chat_prompt.h"
#include "app/batch/input/csv.h"
#include "app/batch/input/openai_body.h"
#include "app/batch/input/sampling_fields.h"
#include "app/cli/parse_value.h"
#include "app/output/json_text.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

Json ParseRecord(std::string_view record) {
  Json json;
  const std::string error = ParseJsonText(record, json);
  if (!error.empty()) throw RowError("invalid_json", error);
  if (!json.is_object()) throw RowError("invalid_json", "a row must be an object");
  return json;
}

std::vector<int32_t> PromptIds(const std::string& name, const Json& value) {
  if (!value.is_array()) throw RowError("invalid_row", name + ": must be a list of token ids");
  std::vector<int32_t> ids;
  ids.reserve(value.size());
  for (const Json& element : value) {
    const int64_t id = IntegerField(name, element);
    if (!(id >= 0 && id <= std::numeric_limits<int32_t>::max())) {
      throw RowError("invalid_row", name + ": not a token id (" + std::to_string(id) + ")");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

[[noreturn]] void UnknownField(const std::string& name, bool in_openai_row) {
  std::vector<std::string> known = {"prompt",
                                    "messages",
                                    "prompt_token_ids",
                                    "n",
                                    "presence_penalty",
                                    "frequency_penalty",
                                    "temperature",
                                    "top_p",
                                    "top_k",
                                    "min_p",
                                    "repetition_penalty",
                                    "max_tokens",
                                    "min_tokens",
                                    "logprobs",
                                    "prompt_logprobs",
                                    "ignore_eos",
                                    "stop",
                                    "stop_token_ids",
                                    "bad_words",
                                    "allowed_token_ids",
                                    "logit_bias",
                                    "structured_outputs",
                                    "seed",
                                    "custom_id",
                                    "priority",
                                    "cache_salt",
                                    "skip_special_tokens",
                                    "thinking_token_budget",
                                    "reasoning_effort",
                                    "chat_template_kwargs"};
  if (in_openai_row) known.emplace_back("max_completion_tokens");
  const std::string near = NearestName(name, known);
  throw RowError("invalid_row",
                 name.substr(0, 64) + ": unknown field" + (near.empty() ? "" : "; did you mean " + near + "?"));
}

// Sets the member of RequestOptions called `name`. Returns false if there is none.
bool SetOption(const std::string& name, const Json& value, BatchRow& row) {
  if (name == "priority") {
    if (!value.is_null()) row.options.priority = IntegerField(name, value);
    return true;
  }
  if (name == "cache_salt") {
    if (!value.is_null()) row.options.cache_salt = TextField(name, value);
    return true;
  }
  return false;
}

}  // namespace

RowParser::RowParser(InputFormat format, RowDefaults defaults, const PromptRenderer* renderer)
    : format_(format), defaults_(std::move(defaults)), renderer_(renderer) {}

void RowParser::SetColumns(std::string_view record, const std::optional<std::string>& row_template) {
  if (record.substr(0, 3) == "\xEF\xBB\xBF") record.remove_prefix(3);  // spreadsheets write a byte order mark
  std::vector<std::string> columns;
  try {
    columns = SplitCsvRecord(record, format_ == InputFormat::kTsv ? '\t' : ',');
  } catch (const RequestError& error) {
    throw ConfigError(std::string("header ") + error.what());
  }
  columns_ = std::move(columns);
  if (defaults_.preset) defaults_.preset->CheckVariables(columns_);
  if (row_template) {
    template_.emplace(*row_template, columns_);
    return;
  }
  const auto index_of = [&](std::string_view name) {
    return static_cast<size_t>(std::find(columns_.begin(), columns_.end(), name) - columns_.begin());
  };
  size_t column = columns_.size() == 1 ? 0 : index_of("prompt");
  if (column == columns_.size() && defaults_.preset) column = index_of(kInputName);
  if (column < columns_.size()) {
    template_.emplace(column);
  } else if (defaults_.preset && defaults_.preset->preset().prompt && !defaults_.preset->takes_input()) {
    template_.emplace("", columns_);
  } else {
    throw ConfigError(std::string("--template: required, because the input has no column named prompt") +
                      (defaults_.preset ? " or input" : ""));
  }
}

Prompt RowParser::TextRowPrompt(const std::string& text) const {
  if (!PromptsAreChats()) return TextPrompt{text, true};
  Json body;
  body["messages"] = Json::array({Json({{"role", "user"}, {"content", text}})});
  return TextPrompt{ChatPrompt(body, defaults_.system, renderer_), false};
}

bool RowParser::PromptsAreChats() const {
  if (defaults_.prompts_are_chats) return *defaults_.prompts_are_chats;
  return (format_ != InputFormat::kJsonLines || defaults_.preset) && renderer_ != nullptr;
}

std::string RowParser::WithPreset(std::string text, const std::vector<std::string>& fields) const {
  if (!defaults_.preset) return text;
  // The other formats have no columns.
  return fields.empty() ? defaults_.preset->Fill(text) : defaults_.preset->Fill(text, columns_, fields);
}

BatchRow RowParser::Parse(std::string_view record, RowId& id) const {
  if (format_ == InputFormat::kJsonLines) return ParseJson(record, id);
  BatchRow row;
  row.id = id;
  row.params = defaults_.params;
  row.is_chat = PromptsAreChats();
  if (format_ == InputFormat::kText) {
    row.prompt = TextRowPrompt(WithPreset(std::string(record)));
    return row;
  }
  std::vector<std::string> fields;
  try {
    fields = SplitCsvRecord(record, format_ == InputFormat::kTsv ? '\t' : ',');
  } catch (const RequestError& error) {
    throw RowError("invalid_row", error.what());
  }
  if (fields.size() != columns_.size()) {
    throw RowError("invalid_row", "row: has " + std::to_string(fields.size()) + " fields, but the header has " +
                                      std::to_string(columns_.size()));
  }
  row.prompt = TextRowPrompt(WithPreset(template_->Fill(fields), fields));
  return row;
}

BatchRow RowParser::ParseJson(std::string_view record, RowId& id) const {
  const Json json = ParseRecord(record);
  id.is_openai = json.contains("body") || json.contains("url") || json.contains("method");
  if (const auto custom_id = json.find("custom_id"); custom_id != json.end() && !custom_id->is_null()) {
    id.custom_id = TextField("custom_id", *custom_id);
  }
  BatchRow row;
  row.id = id;
  row.params = defaults_.params;
  const Json* body = &json;
  if (id.is_openai) {
    if (!id.custom_id) throw RowError("invalid_row", "custom_id: missing");
    row.kind = OpenAiKind(json);
    for (const auto& [name, value] : json.items()) {
      if (name != "custom_id" && name != "method" && name != "url" && name != "body") UnknownField(name, true);
    }
    if (!json.contains("body") || !json["body"].is_object()) throw RowError("invalid_row", "body: must be an object");
    body = &json["body"];
  }

  bool add_special_tokens = true;
  const Json* prompt = nullptr;
  std::string prompt_name;
  for (const auto& [name, value] : body->items()) {
    const bool is_prompt = name == "prompt" || name == "messages" || name == "prompt_token_ids";
    if (is_prompt) {
      if (prompt != nullptr) throw RowError("invalid_row", "row: has both " + prompt_name + " and " + name);
      prompt = &value;
      prompt_name = name;
    } else if (name == "add_special_tokens") {
      add_special_tokens = SwitchField(name, value);
    } else if (IsChatField(name) || (name == "custom_id" && !id.is_openai) || SetOption(name, value, row)) {
      continue;
    } else if (id.is_openai && SetOpenAiField(name, value, *body, row)) {
      continue;
    } else if (!SetSamplingField(name, value, row.params)) {
      UnknownField(name, id.is_openai);
    }
  }
  if (row.kind == RowKind::kOpenAiChat && prompt_name != "messages") {
    throw RowError("invalid_row", "messages: missing");
  }
  if (row.kind == RowKind::kOpenAiCompletion && prompt_name != "prompt")
    throw RowError("invalid_row", "prompt: missing");
  if (prompt == nullptr) throw RowError("invalid_row", "row: needs prompt, messages or prompt_token_ids");

  if (prompt_name == "messages") {
    row.prompt = TextPrompt{ChatPrompt(*body, defaults_.system, renderer_), false};
    row.is_chat = true;
  } else if (prompt_name == "prompt_token_ids" || prompt->is_array()) {
    row.prompt = PromptIds(prompt_name, *prompt);
  } else if (row.kind == RowKind::kOpenAiCompletion) {
    row.prompt = TextPrompt{TextField("prompt", *prompt), add_special_tokens};
  } else {
    const std::string text = WithPreset(TextField("prompt", *prompt));
    row.is_chat = PromptsAreChats();
    if (row.is_chat) {
      row.prompt = TextRowPrompt(text);
    } else {
      row.prompt = TextPrompt{text, add_special_tokens};
    }
  }
  return row;
}

}  // namespace vllm::app
