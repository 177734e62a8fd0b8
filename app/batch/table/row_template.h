// RowTemplate: builds a prompt from the fields of a CSV or TSV row. An immutable value; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/presets/prompt_template.h"

namespace vllm::app {

// A template such as "Translate: {column}". {{ and }} stand for literal braces.
class RowTemplate {
 public:
  // `flag` names the template in errors. Throws ConfigError if the braces do not match or a name is not in `columns`.
  RowTemplate(std::string_view text, const std::vector<std::string>& columns, const std::string& flag);
  // The template whose text is the field of this column.
  explicit RowTemplate(size_t column) : template_("{field}", ""), columns_{column} {}

  // Returns true if the text contains this column.
  bool Uses(size_t column) const;
  // Returns the text with each {column} replaced by its field. REQUIRES: `fields` has one field per column.
  std::string Fill(const std::vector<std::string>& fields) const;

 private:
  PromptTemplate template_;
  std::vector<size_t> columns_;  // the column of each name in template_
};

}  // namespace vllm::app
