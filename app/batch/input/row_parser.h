// RowParser: parses a record of the input into a BatchRow. Immutable once the columns are set. Owned by the batch
// command; main thread. A JSON row is one of
//     {"prompt": TEXT | [IDS]} {"prompt_token_ids": [IDS]} {"messages": [{"role","content"},...]}
// with optional sampling fields, custom_id, priority, cache_salt, add_special_tokens, tools, add_generation_prompt,
// reasoning_effort and chat_template_kwargs, or an OpenAI batch row
//     {"custom_id","method":"POST","url":"/v1/chat/completions" | "/v1/completions","body":{...}}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/batch/input/batch_row.h"
#include "app/batch/input/row_template.h"
#include "app/model/prompt_renderer.h"
#include "app/presets/preset_prompt.h"

namespace vllm::app {

enum class InputFormat : uint8_t { kText, kJsonLines, kCsv, kTsv };

struct RowDefaults {
  SamplingParams params;
  std::string system;  // empty: none
  // If true, each prompt string, except in an OpenAI row, is the user message of a chat. If unset, text lines and table
  // rows are chats if the model has a chat template, and so are {"prompt"} rows with a preset.
  std::optional<bool> prompts_are_chats;
  // Makes the prompt of each row from its text and columns, except of an OpenAI row and one with messages or token ids.
  std::optional<PresetPrompt> preset;
};

class RowParser {
 public:
  // Borrows `renderer`. If it is null, rows that need a chat template are errors.
  RowParser(InputFormat format, RowDefaults defaults, const PromptRenderer* renderer);

  // Sets the column names of a CSV or TSV input from its first record. Throws ConfigError if the record is invalid,
  // or if `row_template` is invalid or names a column that does not exist. Without a template, there must be only one
  // column, or one called "prompt", or, with a preset, one called "input"; no such column is needed if the preset's
  // prompt uses columns instead of {input}. Throws ConfigError if a variable of the preset has no value and is no
  // column.
  void SetColumns(std::string_view record, const std::optional<std::string>& row_template);
  bool needs_columns() const { return (format_ == InputFormat::kCsv || format_ == InputFormat::kTsv) && !template_; }

  // Parses one record. Sets id.custom_id and id.is_openai as soon as they are known, even if an error follows. Throws
  // RowError.
  BatchRow Parse(std::string_view record, RowId& id) const;

 private:
  BatchRow ParseJson(std::string_view record, RowId& id) const;
  Prompt TextRowPrompt(const std::string& text) const;
  // Returns the text of a row as the preset, if there is one, makes a prompt from it.
  std::string WithPreset(std::string text, const std::vector<std::string>& fields = {}) const;
  bool PromptsAreChats() const;

  InputFormat format_;
  RowDefaults defaults_;
  const PromptRenderer* renderer_;
  std::vector<std::string> columns_;
  std::optional<RowTemplate> template_;
};

}  // namespace vllm::app
