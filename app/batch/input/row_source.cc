#include "app/batch/input/row_source.h"

#include <algorithm>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/hash.h"

namespace vllm::app {
namespace {

bool IsBlank(std::string_view record) {
  return std::all_of(record.begin(), record.end(), [](char c) { return c == ' ' || c == '\t' || c == '\r'; });
}

}  // namespace

void RowSource::SkipFinished(const FinishedRows& finished) {
  finished_ = &finished;
  finished.ForEachId([this](const Hash128& hash) { custom_ids_.Insert(hash); });
}

bool RowSource::ParseRow(RecordSource::Status status) {
  std::optional<RowError> error;
  if (status == RecordSource::Status::kTooLong) {
    error.emplace("line_too_long", "row: too long (limit 64 MiB)");
  } else if (status == RecordSource::Status::kUnreadable) {
    error.emplace("invalid_row", "file: cannot be read");
  } else {
    try {
      if (only_ids_) {
        parser_.ParseId(record_, id);
      } else {
        row = parser_.Parse(record_, id);
      }
      last_was_openai_ = id.is_openai;
    } catch (const RowError& row_error) {
      error = row_error;
    }
  }
  if (finished_ != nullptr && !finished_->empty()) {
    std::optional<Hash128> id_hash;
    if (id.custom_id) id_hash = HashBytes128(*id.custom_id);
    const FinishedRows::Match match = finished_->Find(id.index, id.digest, id_hash);
    if (match == FinishedRows::Match::kFinished) return false;
    if (match == FinishedRows::Match::kChanged) {
      const std::string name = id.custom_id ? "row " + *id.custom_id : "row " + std::to_string(id.index);
      throw ConfigError(
          "batch input: " + name + " (line " + std::to_string(id.line) + ") has changed since the job has finished it",
          id.custom_id ? "give the changed row another id, or start the job again with --overwrite"
                       : "--overwrite starts the job again");
    }
  }
  if (error) throw RowError(*error);
  if (id.custom_id) {
    if (!custom_ids_.Insert(HashBytes128(*id.custom_id))) {
      throw RowError("duplicate_custom_id", id.id_key + ": used by an earlier row");
    }
    id.claims_id = true;
  }
  return true;
}

RowSource::Status RowSource::Next() {
  while (true) {
    if (selection_.IsComplete()) return Status::kEnd;
    const RecordSource::Status status = records_.Next(record_);
    if (status == RecordSource::Status::kNeedInput) return Status::kNeedInput;
    if (status == RecordSource::Status::kEnd) return Status::kEnd;
    const bool is_record = status == RecordSource::Status::kRecord;
    if (!is_record) record_ = {};
    const std::string name = records_.name();
    if (is_record && name.empty() && IsBlank(record_)) continue;
    if (is_record && parser_.needs_columns()) {
      parser_.SetColumns(record_);
      header_digest_ = Hash64(record_);
      continue;
    }
    id = RowId();
    id.index = next_index_++;
    if (!selection_.Selects(id.index)) continue;
    id.line = records_.line();
    id.digest = RowDigest(record_, header_digest_);
    id.is_openai = last_was_openai_;  // used if the record is too long or not valid JSON
    if (!name.empty()) {
      id.custom_id = name;
      id.id_key = "id";
      id.id_value = name;
    }
    if (finished_ != nullptr && finished_->HasRow(id.index, id.digest, last_was_openai_)) {
      ++num_skipped_;
      continue;
    }
    try {
      if (ParseRow(status)) return Status::kRow;
      ++num_skipped_;
    } catch (const RowError& error) {
      code = error.code();
      message = error.what();
      return Status::kBadRow;
    }
  }
}

}  // namespace vllm::app
