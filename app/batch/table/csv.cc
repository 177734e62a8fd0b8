#include "app/batch/table/csv.h"

#include "engine/config/errors.h"

namespace vllm::app {

CsvScanner::Byte CsvScanner::Next(char c) {
  if (state_ == State::kQuoted) {
    if (c != '"') return Byte::kText;
    state_ = State::kAfterQuote;
    return Byte::kQuote;
  }
  const State previous = state_;
  if (c == '"' && previous != State::kUnquoted) {
    state_ = State::kQuoted;
    return previous == State::kAfterQuote ? Byte::kText : Byte::kQuote;
  }
  if (c == delimiter_) {
    state_ = State::kFieldStart;
    return Byte::kDelimiter;
  }
  state_ = State::kUnquoted;
  return previous == State::kAfterQuote ? Byte::kTextAfterQuote : Byte::kText;
}

std::vector<std::string> SplitCsvRecord(std::string_view record, char delimiter) {
  std::vector<std::string> fields(1);
  CsvScanner scanner(delimiter);
  for (const char c : record) {
    switch (scanner.Next(c)) {
      case CsvScanner::Byte::kText:
        fields.back().push_back(c);
        break;
      case CsvScanner::Byte::kQuote:
        break;
      case CsvScanner::Byte::kDelimiter:
        fields.emplace_back();
        break;
      case CsvScanner::Byte::kTextAfterQuote:
        throw RequestError("row: text after a closing quote");
    }
  }
  if (scanner.in_quotes()) throw RequestError("row: unclosed quote");
  return fields;
}

std::string CsvRecord(const std::vector<std::string>& fields, char delimiter) {
  std::string record;
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string& field = fields[i];
    if (i > 0) record += delimiter;
    // A record that is one empty field would be a blank line.
    const bool is_blank_line = fields.size() == 1 && field.find_first_not_of(" \t") == std::string::npos;
    if (field.find_first_of("\"\r\n") == std::string::npos && field.find(delimiter) == std::string::npos &&
        !is_blank_line) {
      record += field;
      continue;
    }
    record += '"';
    for (const char c : field) record += c == '"' ? std::string("\"\"") : std::string(1, c);
    record += '"';
  }
  return record;
}

}  // namespace vllm::app
