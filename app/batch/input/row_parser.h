// RowParser: parses a record of the input into a BatchRow. Owned by the batch command; main thread. A JSON row is one
// of
//     {"prompt": TEXT | [IDS]} {"prompt_token_ids": [IDS]} {"messages": [{"role","content"},...]}
// with optional sampling fields, custom_id or id, priority, cache_salt, add_special_tokens, tools,
// add_generation_prompt, reasoning_effort and chat_template_kwargs, or an OpenAI batch row
//     {"custom_id","method":"POST","url":"/v1/chat/completions" | "/v1/completions","body":{...}}
// Other fields of a plain row are carried to the output, and those of an OpenAI row are ignored, so that the file of
// --errors can be an input.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/batch/input/batch_row.h"
#include "app/batch/table/row_template.h"
#include "app/model/prompt_renderer.h"
#include "app/presets/preset_prompt.h"

namespace vllm::app {

enum class InputFormat : uint8_t { kText, kJsonLines, kCsv, kTsv, kTextFiles };

// How the rows of a table become prompts: --template and related flags.
struct TableOptions {
  std::optional<std::string> row_template;
  std::optional<std::string> system_template;
  std::optional<std::string> id_column;
  std::vector<std::string> carried_columns;  // empty: those that the templates do not use
};

struct RowDefaults {
  SamplingParams params;
  std::string system;  // empty: none
  ToolRequest tools;   // of chats that name none, see ToolsOfVariables, and of --tool-choice
  // If true, each prompt string, except in an OpenAI row, is the user message of a chat. If unset, text lines and table
  // rows are chats if the model has a chat template, and so are {"prompt"} rows with a preset.
  std::optional<bool> prompts_are_chats;
  // Makes the prompt of each row from its text and columns, except of an OpenAI row and one with messages or token ids.
  std::optional<PresetPrompt> preset;
  TableOptions table;
  bool carries = true;  // if false, no field of the input is repeated in the output
};

class RowParser {
 public:
  // Borrows `renderer`. If it is null, rows that need a chat template are errors. Throws ConfigError if the rows must
  // call tools that they cannot have.
  RowParser(InputFormat format, RowDefaults defaults, const PromptRenderer* renderer);

  // Sets the column names of a CSV or TSV input from its first record. Throws ConfigError if the record is invalid,
  // or if an option of the table is invalid or names a column that does not exist. Without a template, there must be
  // only one column, or one called "prompt", or, with a preset, one called "input"; no such column is needed if the
  // preset's prompt uses columns instead of {input}. Throws ConfigError if a variable of the preset has no value and is
  // no column.
  void SetColumns(std::string_view record);
  bool needs_columns() const { return is_table() && !template_; }
  bool is_table() const { return format_ == InputFormat::kCsv || format_ == InputFormat::kTsv; }
  const std::vector<std::string>& columns() const { return columns_; }

  // Parses one record. Sets the parts of `id` other than index, line and digest as soon as they are known, even if an
  // error follows. Throws RowError.
  BatchRow Parse(std::string_view record, RowId& id) const;
  // Only sets the parts of `id` that Parse sets. Throws RowError.
  void ParseId(std::string_view record, RowId& id) const;
  // Returns a warning for each name of an ignored field that looks like a misspelled one, once per name.
  std::vector<std::string> TakeWarnings() { return std::move(warnings_); }

 private:
  BatchRow ParseJson(std::string_view record, RowId& id) const;
  // Returns the fields of a row of a table. Sets the id of the row.
  std::vector<std::string> ParseFields(std::string_view record, RowId& id) const;
  // Carries a field that is not known to the output of a plain row.
  void Carry(const std::string& name, const nlohmann::ordered_json& value, BatchRow& row) const;
  void WarnIfMisspelled(const std::string& name, bool in_openai_row, int64_t line) const;
  // Returns the index of a column. Throws ConfigError.
  size_t ColumnOf(const std::string& name, const char* flag) const;
  Prompt TextRowPrompt(const std::string& text, const std::string& system) const;
  // Returns the text of a row as the preset, if there is one, makes a prompt from it.
  std::string WithPreset(std::string text, const std::vector<std::string>& fields = {}) const;
  bool PromptsAreChats() const;
  // Returns the tools of a chat that names none. Throws RowError if they do not have the one that must be called.
  ToolRequest DefaultTools() const;

  InputFormat format_;
  RowDefaults defaults_;
  const PromptRenderer* renderer_;
  std::vector<std::string> columns_;
  std::optional<RowTemplate> template_;
  std::optional<RowTemplate> system_template_;
  std::optional<size_t> id_column_;
  std::vector<size_t> carried_columns_;
  mutable std::set<std::string> warned_;  // names of fields
  // Names that are close to no parameter: in other rows, in rows of the OpenAI batch API.
  mutable std::array<std::set<std::string>, 2> own_names_;
  mutable std::vector<std::string> warnings_;
};

}  // namespace vllm::app
