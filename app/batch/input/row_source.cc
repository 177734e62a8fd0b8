#include "app/batch/input/row_source.h"

#include <algorithm>
#include <utility>

namespace vllm::app {
namespace {

bool IsBlank(std::string_view record) {
  return std::all_of(record.begin(), record.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
}

}  // namespace

RowSource::RowSource(RecordReader& reader, RowParser& parser, std::optional<std::string> row_template)
    : reader_(reader), parser_(parser), row_template_(std::move(row_template)) {}

bool RowSource::IsNewCustomId(const std::string& custom_id) {
  return custom_ids_.insert(HashBytes128(custom_id)).second;
}

RowSource::Status RowSource::Next() {
  std::string_view record;
  while (true) {
    const RecordReader::Status status = reader_.Next(record);
    if (status == RecordReader::Status::kNeedInput) return Status::kNeedInput;
    if (status == RecordReader::Status::kEnd) return Status::kEnd;
    if (status == RecordReader::Status::kRecord && IsBlank(record)) continue;
    if (status == RecordReader::Status::kRecord && parser_.needs_columns()) {
      parser_.SetColumns(record, row_template_);
      continue;
    }
    id = RowId();
    id.index = next_index_++;
    id.line = reader_.line();
    id.is_openai = last_was_openai_;  // used if the record is too long or not valid JSON
    if (status == RecordReader::Status::kTooLong) {
      code = "line_too_long";
      message = "row: too long (limit 64 MiB)";
      return Status::kBadRow;
    }
    try {
      row = parser_.Parse(record, id);
      last_was_openai_ = id.is_openai;
      if (id.custom_id && !IsNewCustomId(*id.custom_id)) {
        throw RowError("duplicate_custom_id", "custom_id: used by an earlier row");
      }
      return Status::kRow;
    } catch (const RowError& error) {
      code = error.code();
      message = error.what();
      return Status::kBadRow;
    }
  }
}

}  // namespace vllm::app
