// RowTemplate: makes a prompt from the fields of a CSV or TSV row. A plain value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vllm {

// "Translate: {column}" with {{ and }} for braces. Immutable.
class RowTemplate {
 public:
  // Throws ConfigError for an unclosed brace or a column that is not among `columns`.
  RowTemplate(std::string_view text, const std::vector<std::string>& columns);

  // REQUIRES: as many fields as columns.
  std::string Fill(const std::vector<std::string>& fields) const;

 private:
  struct Part {
    std::string text;
    int column;  // -1: only text
  };
  std::vector<Part> parts_;
};

}  // namespace vllm
