// RowSource: reads the rows of an input one by one. Skips blank lines, reads the header row of a table, and rejects a
// custom_id that an earlier valid row has used. Owned by the batch command; main thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "app/batch/input/batch_row.h"
#include "app/batch/input/record_reader.h"
#include "app/batch/input/row_parser.h"
#include "engine/config/hash.h"

namespace vllm::app {

class RowSource {
 public:
  enum class Status : uint8_t { kRow, kBadRow, kNeedInput, kEnd };

  // Borrows `reader` and `parser`. `row_template` is the value of --template.
  RowSource(RecordReader& reader, RowParser& parser, std::optional<std::string> row_template);

  // kRow: `row` and `id` are set. kBadRow: `id`, `code` and `message` describe the error. kNeedInput: call
  // reader().Fill() first. Throws ConfigError if the header row is invalid.
  Status Next();

  BatchRow row;
  RowId id;
  std::string code;
  std::string message;
  RecordReader& reader() { return reader_; }

 private:
  bool IsNewCustomId(const std::string& custom_id);

  RecordReader& reader_;
  RowParser& parser_;
  std::optional<std::string> row_template_;
  int64_t next_index_ = 0;
  bool last_was_openai_ = false;
  // 128-bit hashes instead of strings: a million ids of any length take 60 MB. Collisions are practically impossible.
  struct LowBits {
    size_t operator()(const Hash128& hash) const { return hash.lo; }
  };
  std::unordered_set<Hash128, LowBits> custom_ids_;
};

}  // namespace vllm::app
