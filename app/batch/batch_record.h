// The output records of a batch. They contain nothing that depends on timing, batching or the prefix cache, so equal
// results of a row have equal records, byte for byte. Pure functions; any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/batch/input/batch_row.h"
#include "app/batch/input/row_parser.h"
#include "app/batch/tools/answer_parts.h"
#include "engine/request/request_output.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

// The parts of a row that its record needs. Kept while the engine runs the row.
struct RecordHead {
  RowId id;
  RowKind kind = RowKind::kPlain;
  std::string model;
  bool with_logprobs = false;
  bool with_prompt_logprobs = false;
  AnswerFormat format = {};
  nlohmann::ordered_json carried = nullptr;  // see BatchRow
  std::vector<std::string> fields = {};      // see BatchRow
  std::string input_record = {};             // the text of the row, if a record for the errors file may need it
  bool was_openai = false;                   // see JobEntry
  int64_t order = 0;                         // the number of rows that were run before it
};

enum class BatchFormat : uint8_t { kJsonLines, kCsv, kText };

// Returns {"index" | "custom_id" | "id","prompt_tokens","outputs":[...]}, with "prompt_logprobs" if requested and
// "input" if fields are carried, or an OpenAI batch response, as one line of JSON. REQUIRES: output is finished.
std::string ResultRecord(const RecordHead& head, const RequestOutput& output, const tokenizer::Tokenizer* tokenizer);

// Returns {"index" | "custom_id" | "id","error":{"code","message","line"}} and "input" if fields are carried, or an
// OpenAI batch response with this error, as one line of JSON.
std::string ErrorRecord(const RecordHead& head, std::string_view code, std::string_view message);

// How the records of one batch that are not JSON are written.
struct TableFormat {
  std::vector<std::string> columns;  // of the input; empty: the input is no table
  char delimiter = ',';              // of the output and of the errors file

  // Returns the header: the columns, or "id", and "output", "finish_reason" and "error".
  std::string Head() const;
  // Returns one line per answer, without the last line break.
  std::string Result(const RecordHead& head, const RequestOutput& output) const;
  std::string Error(const RecordHead& head, std::string_view message) const;
};

// Returns the answers of a row, separated by line breaks.
std::string TextRecord(const RecordHead& head, const RequestOutput& output);

// Returns the record of a failed row for the errors file, which has the format of the input, so that it can be the
// input of another batch: a JSON row with the error, the fields of a table row and the message, or the line itself.
std::string RetryRecord(const RecordHead& head, InputFormat format, const TableFormat& table, std::string_view code,
                        std::string_view message);
// Returns the first line of the errors file of a table, else "".
std::string RetryHead(InputFormat format, const TableFormat& table);

}  // namespace vllm::app
