// The quoting rules of CSV and TSV (RFC 4180): a field in double quotes may contain delimiters, line breaks and doubled
// quotes. CsvScanner applies the rules byte by byte. RecordReader uses it to find the ends of records, and
// SplitCsvRecord to split a record into fields. A plain value and a pure function; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {

class CsvScanner {
 public:
  enum class Byte : uint8_t {
    kText,            // part of the field's value, such as the second byte of a doubled quote
    kQuote,           // opens or closes a quoted field, or is the first byte of a doubled quote
    kDelimiter,       // ends the field
    kTextAfterQuote,  // text directly after a closing quote, which is an error in the record
  };

  explicit CsvScanner(char delimiter) : delimiter_(delimiter) {}

  // Consumes the next byte of a record and returns its role. A quote opens a quoted field only at the field's start.
  Byte Next(char c);
  // Returns true inside a quoted field, where a line break is text. Elsewhere a line break ends the record.
  bool in_quotes() const { return state_ == State::kQuoted; }
  // Prepares for the next record.
  void Reset() { state_ = State::kFieldStart; }

 private:
  enum class State : uint8_t { kFieldStart, kUnquoted, kQuoted, kAfterQuote };

  char delimiter_;
  State state_ = State::kFieldStart;
};

// Returns the fields of one record, with their quoting removed. Throws RequestError if a quote is not closed or text
// follows a closing quote.
std::vector<std::string> SplitCsvRecord(std::string_view record, char delimiter);

// Returns the fields as one record, without a line break at its end. Fields are quoted where necessary.
std::string CsvRecord(const std::vector<std::string>& fields, char delimiter);

}  // namespace vllm::app
