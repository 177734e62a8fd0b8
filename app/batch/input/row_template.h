// RowTemplate: builds a prompt from the fields of a CSV or TSV row. An immutable value; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

// A template such as "Translate: {column}". {{ and }} stand for literal braces.
class RowTemplate {
 public:
  // Throws ConfigError if the braces do not match or a name is not in `columns`.
  RowTemplate(std::string_view text, const std::vector<std::string>& columns);

  // Returns the text with each {column} replaced by its field. REQUIRES: `fields` has one field per column.
  std::string Fill(const std::vector<std::string>& fields) const;

 private:
  struct Part {
    std::string text;
    int column;  // index of the field that follows `text`; -1: none
  };
  std::vector<Part> parts_;
};

}  // namespace vllm::app
