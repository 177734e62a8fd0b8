// CSV and TSV rows (RFC 4180: fields in double quotes may hold delimiters, line breaks and doubled quotes), and the
// template that makes a prompt of a row. Pure values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vllm {

// Throws RequestError when a quote is not closed or text follows a closing quote.
std::vector<std::string> SplitDelimited(std::string_view record, char delimiter);

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
