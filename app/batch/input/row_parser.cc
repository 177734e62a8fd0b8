#include "app/batch/input/row_parser.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/batch/input/chat_prompt.h"
#include "app/batch/input/openai_body.h"
#include "app/batch/input/pooling_body.h"
#include "app/batch/input/sampling_fields.h"
#include "app/batch/table/csv.h"
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

// Returns true for a name that belongs inside structured_outputs, or that older versions of vLLM had instead.
bool IsConstraintName(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"json_schema", "json_object", "regex", "grammar",
                                                      "structural_tag"};
  return name.starts_with("guided_") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// The names of known fields, for finding misspelled ones.
std::vector<std::string> KnownFields(bool in_openai_row) {
  std::vector<std::string> known = {"prompt",
                                    "messages",
                                    "prompt_token_ids",
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
                                    "best_of",
                                    "use_beam_search",
                                    "beam_width",
                                    "length_penalty",
                                    "structured_outputs",
                                    "response_format",
                                    "seed",
                                    "custom_id",
                                    "priority",
                                    "cache_salt",
                                    "lora",
                                    "skip_special_tokens",
                                    "thinking_token_budget",
                                    "reasoning_effort",
                                    "chat_template_kwargs"};
  if (in_openai_row) known.emplace_back("max_completion_tokens");
  return known;
}

// Sets the id of a row from one of its fields, which may be an integer.
void SetId(const std::string& key, const Json& value, RowId& id) {
  if (value.is_number_integer()) {
    id.custom_id = value.dump();
  } else if (value.is_string()) {
    id.custom_id = value.get<std::string>();
  } else {
    throw RowError("invalid_row", key + ": must be a string or an integer");
  }
  id.id_key = key;
  id.id_value = value;
}

bool IsOpenAiRow(const Json& row) {
  if (row.contains("prompt") || row.contains("messages") || row.contains("prompt_token_ids")) return false;
  return row.contains("body") || row.contains("url") || row.contains("method");
}

void SetJsonId(const Json& row, RowId& id) {
  id.is_openai = IsOpenAiRow(row);
  if (const auto custom_id = row.find("custom_id"); custom_id != row.end() && !custom_id->is_null()) {
    id.custom_id = TextField("custom_id", *custom_id);
    id.id_value = *id.custom_id;
  } else if (const auto row_id = row.find("id"); !id.is_openai && row_id != row.end() && !row_id->is_null()) {
    SetId("id", *row_id, id);
  }
}

// Fields of the records that a file of --errors has and its rows do not.
bool IsRecordField(const std::string& name, bool in_openai_row) {
  return name == "error" || (in_openai_row && (name == "id" || name == "response"));
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
  if (name == "lora") {
    row.options.lora = value.is_null() ? "" : TextField(name, value);
    return true;
  }
  return false;
}

}  // namespace

RowParser::RowParser(InputFormat format, RowDefaults defaults, const PromptRenderer* renderer)
    : format_(format), defaults_(std::move(defaults)), renderer_(renderer) {
  if (format_ == InputFormat::kJsonLines || !PromptsAreChats()) return;
  if (const std::string problem = ToolChoiceProblem(defaults_.tools); !problem.empty()) {
    throw ConfigError("--tool-choice: " + problem, "--tools names the tools of these rows");
  }
}

size_t RowParser::ColumnOf(const std::string& name, const char* flag) const {
  const auto at = std::find(columns_.begin(), columns_.end(), name);
  if (at == columns_.end()) {
    const std::string near = NearestName(name, columns_);
    throw ConfigError(std::string(flag) + ": unknown column (" + name + ")" +
                      (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  return static_cast<size_t>(at - columns_.begin());
}

void RowParser::SetColumns(std::string_view record) {
  if (record.substr(0, 3) == "\xEF\xBB\xBF") record.remove_prefix(3);  // spreadsheets write a byte order mark
  std::vector<std::string> columns;
  try {
    columns = SplitCsvRecord(record, format_ == InputFormat::kTsv ? '\t' : ',');
  } catch (const RequestError& error) {
    throw ConfigError(std::string("header ") + error.what());
  }
  columns_ = std::move(columns);
  if (defaults_.preset) defaults_.preset->CheckVariables(columns_);
  const TableOptions& table = defaults_.table;
  if (table.id_column) id_column_ = ColumnOf(*table.id_column, "--id-column");
  if (table.system_template) system_template_.emplace(*table.system_template, columns_, "--system-template");
  const auto index_of = [&](std::string_view name) {
    return static_cast<size_t>(std::find(columns_.begin(), columns_.end(), name) - columns_.begin());
  };
  const auto choose_carried = [&] {
    if (!defaults_.carries) return;
    for (const std::string& name : table.carried_columns) carried_columns_.push_back(ColumnOf(name, "--carry-column"));
    if (!carried_columns_.empty()) return;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const bool is_used = template_->Uses(i) || (system_template_ && system_template_->Uses(i)) || id_column_ == i ||
                           (defaults_.preset && defaults_.preset->preset().prompt &&
                            defaults_.preset->preset().prompt->Uses(columns_[i]));
      if (!is_used) carried_columns_.push_back(i);
    }
  };
  if (table.row_template) {
    template_.emplace(*table.row_template, columns_, "--template");
    choose_carried();
    return;
  }
  size_t column = columns_.size() == 1 ? 0 : index_of("prompt");
  if (column == columns_.size() && defaults_.preset) column = index_of(kInputName);
  if (column < columns_.size()) {
    template_.emplace(column);
  } else if (defaults_.preset && defaults_.preset->preset().prompt && !defaults_.preset->takes_input()) {
    template_.emplace("", columns_, "--template");
  } else {
    throw ConfigError(std::string("--template: required, because the input has no column named prompt") +
                      (defaults_.preset ? " or input" : ""));
  }
  choose_carried();
}

Prompt RowParser::TextRowPrompt(const std::string& text, const std::string& system) const {
  if (!PromptsAreChats()) return TextPrompt{text, true};
  Json body;
  body["messages"] = Json::array({Json({{"role", "user"}, {"content", text}})});
  return TextPrompt{ChatPrompt(body, system, renderer_), false};
}

bool RowParser::PromptsAreChats() const {
  if (defaults_.prompts_are_chats) return *defaults_.prompts_are_chats;
  return (format_ != InputFormat::kJsonLines || defaults_.preset) && renderer_ != nullptr;
}

ToolRequest RowParser::DefaultTools() const {
  if (defaults_.tools.tools == nullptr) return {};
  if (const std::string problem = ToolChoiceProblem(defaults_.tools); !problem.empty()) {
    throw RowError("invalid_row", "tool_choice: " + problem);
  }
  return defaults_.tools;
}

std::string RowParser::WithPreset(std::string text, const std::vector<std::string>& fields) const {
  if (!defaults_.preset) return text;
  // The other formats have no columns.
  return fields.empty() ? defaults_.preset->Fill(text) : defaults_.preset->Fill(text, columns_, fields);
}

std::vector<std::string> RowParser::ParseFields(std::string_view record, RowId& id) const {
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
  if (id_column_) {
    if (fields[*id_column_].empty()) throw RowError("invalid_row", columns_[*id_column_] + ": the id is empty");
    SetId("id", fields[*id_column_], id);
  }
  return fields;
}

void RowParser::ParseId(std::string_view record, RowId& id) const {
  if (format_ == InputFormat::kJsonLines) {
    SetJsonId(ParseRecord(record), id);
  } else if (is_table()) {
    ParseFields(record, id);
  }
}

BatchRow RowParser::Parse(std::string_view record, RowId& id) const {
  if (format_ == InputFormat::kJsonLines) return ParseJson(record, id);
  BatchRow row;
  row.params = defaults_.params;
  row.is_chat = PromptsAreChats();
  if (row.is_chat) row.tools = DefaultTools();
  if (!is_table()) {
    if (format_ == InputFormat::kTextFiles && record.find('\0') != std::string_view::npos) {
      throw RowError("invalid_row", "file: is not a text file");
    }
    row.id = id;
    row.prompt = TextRowPrompt(WithPreset(std::string(record)), defaults_.system);
    return row;
  }
  row.fields = ParseFields(record, id);
  row.id = id;
  for (const size_t column : carried_columns_) row.carried[columns_[column]] = row.fields[column];
  const std::string system = system_template_ ? system_template_->Fill(row.fields) : defaults_.system;
  row.prompt = TextRowPrompt(WithPreset(template_->Fill(row.fields), row.fields), system);
  return row;
}

void RowParser::WarnIfMisspelled(const std::string& name, bool in_openai_row, int64_t line) const {
  constexpr size_t kMaxWarnings = 100;
  if (warned_.size() >= kMaxWarnings || name.size() > 64 || warned_.contains(name)) return;
  // Rows usually have the same fields, and comparing a name with all parameters takes microseconds.
  constexpr size_t kMaxOwnNames = 256;
  std::set<std::string>& own_names = own_names_[in_openai_row ? 1 : 0];
  if (own_names.contains(name)) return;
  const std::string near =
      IsConstraintName(name) ? "structured_outputs" : NearestName(name, KnownFields(in_openai_row));
  if (near.empty()) {
    if (own_names.size() < kMaxOwnNames) own_names.insert(name);
    return;
  }
  warned_.insert(name);
  warnings_.push_back("line " + std::to_string(line) + ": field " + name +
                      " is not known and has no effect; did you mean " + near + "?");
}

void RowParser::Carry(const std::string& name, const Json& value, BatchRow& row) const {
  WarnIfMisspelled(name, row.id.is_openai, row.id.line);
  if (defaults_.carries && !row.id.is_openai) row.carried[name] = value;
}

BatchRow RowParser::ParseJson(std::string_view record, RowId& id) const {
  const Json json = ParseRecord(record);
  SetJsonId(json, id);
  BatchRow row;
  row.id = id;
  row.params = defaults_.params;
  const Json* body = &json;
  if (id.is_openai) {
    if (!id.custom_id) throw RowError("invalid_row", "custom_id: missing");
    row.kind = OpenAiKind(json);
    for (const auto& [name, value] : json.items()) {
      const bool is_known = name == "custom_id" || name == "method" || name == "url" || name == "body";
      if (!is_known && !IsRecordField(name, true)) Carry(name, value, row);
    }
    if (!json.contains("body") || !json["body"].is_object()) throw RowError("invalid_row", "body: must be an object");
    body = &json["body"];
    if (IsPooling(row.kind)) {
      ReadPoolingBody(*body, row);
      return row;
    }
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
    } else if (IsChatField(name) || IsToolField(name) || (name == id.id_key && !id.is_openai) ||
               SetOption(name, value, row)) {
      continue;
    } else if (IsRecordField(name, false) && !id.is_openai) {
      continue;
    } else if (id.is_openai && SetOpenAiField(name, value, *body, row)) {
      continue;
    } else if (!SetSamplingField(name, value, row.params)) {
      Carry(name, value, row);
    }
  }
  const auto is_set = [&](const char* name) { return body->contains(name) && !(*body)[name].is_null(); };
  if (is_set("structured_outputs") && is_set("response_format")) {
    throw RowError("invalid_row", "row: has both structured_outputs and response_format");
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
    try {
      row.tools = ReadToolRequest(*body, defaults_.tools);
    } catch (const RequestError& error) {
      throw RowError("invalid_row", error.what());
    }
  } else if (prompt_name == "prompt_token_ids" || prompt->is_array()) {
    row.prompt = PromptIds(prompt_name, *prompt);
  } else if (row.kind == RowKind::kOpenAiCompletion) {
    row.prompt = TextPrompt{TextField("prompt", *prompt), add_special_tokens};
  } else {
    const std::string text = WithPreset(TextField("prompt", *prompt));
    row.is_chat = PromptsAreChats();
    if (row.is_chat) {
      row.tools = DefaultTools();
      row.prompt = TextRowPrompt(text, defaults_.system);
    } else {
      row.prompt = TextPrompt{text, add_special_tokens};
    }
  }
  return row;
}

}  // namespace vllm::app
