// RowParser: a record of the input -> a BatchRow, or the reason why not. Stateless but for what it is made with; main
// thread. A JSON row is one of
//     {"prompt": TEXT | [IDS]} {"prompt_token_ids": [IDS]} {"messages": [{"role","content"},...]}
// with sampling fields, custom_id, priority, cache_salt, add_special_tokens, tools, chat_template_kwargs beside it, or
// an OpenAI batch row {"custom_id","method":"POST","url":"/v1/chat/completions" | "/v1/completions","body":{...}}.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "app/batch/batch_row.h"
#include "app/batch/row_template.h"
#include "app/model/prompt_renderer.h"

namespace vllm {

enum class InputFormat : uint8_t { kText, kJsonLines, kCsv, kTsv };

struct RowDefaults {
  SamplingParams params;
  std::string system;  // empty: none
  // Whether a text is one user message of a chat. None: lines and table rows are where the model has a chat template,
  // {"prompt"} rows are not.
  std::optional<bool> prompts_are_chats;
};

class RowParser {
 public:
  // `renderer` is borrowed and may be null: rows that need a template are errors then.
  RowParser(InputFormat format, RowDefaults defaults, const PromptRenderer* renderer);

  // For .csv and .tsv: the first record names the columns. Throws ConfigError.
  void SetColumns(std::string_view record, const std::optional<std::string>& row_template);
  bool needs_columns() const { return (format_ == InputFormat::kCsv || format_ == InputFormat::kTsv) && !template_; }

  // Fills id.custom_id and id.is_openai as soon as they are known, also when it then throws RowError.
  BatchRow Parse(std::string_view record, RowId& id) const;

 private:
  BatchRow ParseJson(std::string_view record, RowId& id) const;
  Prompt TextRowPrompt(const std::string& text) const;
  bool PromptsAreChats() const;

  InputFormat format_;
  RowDefaults defaults_;
  const PromptRenderer* renderer_;
  size_t num_columns_ = 0;
  std::optional<RowTemplate> template_;
};

}  // namespace vllm
