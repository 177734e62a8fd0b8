// JobFile: the file OUTPUT.job next to the output of a batch. It says what job the output belongs to and which rows are
// in it, so that the job can be resumed. Owned by BatchJob; main thread. ReadJob may be called on any thread.
//
//     file   = header *entry
//     header = a JSON object, spaces, LF; its size is a multiple of 64 bytes and at most 16 MiB
//     entry  = 64 bytes; integers are little-endian:
//
// clang-format off
//     offset  size  field
//          0     1  kind: 1 head of the output, 2 row, 3 input, 4 end of the job
//          1     1  row: RowStatus
//          2     1  row: 0 if its record is in the output, 1 if it is in the file of --errors
//          3     1  row: 1 if the last valid row up to this one was one of the OpenAI batch API
//          4     4  time, in seconds since 1970
//          8     8  row: index of the row from 0; input: number of rows
//         16     8  row, input: XXH3-64 of its bytes; see RowDigest for rows
//         24    16  row: XXH3-128 of its custom_id, low half first; 0 if it has none
//         40     8  head, row: size of the file with its record; input: size in bytes
//         48     4  row: low half of the XXH3-64 of the record with its line break
//         52     4  row: prompt tokens
//         56     4  row: output tokens
//         60     4  low half of the XXH3-64 of bytes 0 to 59
// clang-format on
//
// An entry is written after its record. After kill -9, at most one record therefore has no entry, and BatchJob removes
// it. A partial entry at the end, or one whose checksum is wrong, ends the list. The first line of a job file:
//     {"job":"vllmcli batch","version":1,"generation":0,"directory":"/home/ann","arguments":["prompts.jsonl"],...}
// The keys of the header are listed in job_identity.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "app/batch/job/output_file.h"
#include "engine/config/hash.h"

namespace vllm::app {

// How a row ended. The numbers are part of the file format; RowStatusName gives the codes of error records.
enum class RowStatus : uint8_t {
  kOk = 0,
  kInvalidJson = 1,
  kInvalidRow = 2,
  kInvalidRequest = 3,
  kDuplicateCustomId = 4,
  kLineTooLong = 5,
  kEngineError = 6,
  kAborted = 7,
};
inline constexpr int kNumRowStatuses = 8;

// Returns "ok" or the code in the row's error record, such as "invalid_row".
std::string RowStatusName(RowStatus status);
// Returns the status with this name. REQUIRES: there is one.
RowStatus RowStatusOf(std::string_view name);

struct JobEntry {
  enum class Kind : uint8_t { kHead = 1, kRow = 2, kInput = 3, kEnd = 4 };
  static constexpr size_t kBytes = 64;

  Kind kind = Kind::kRow;
  RowStatus status = RowStatus::kOk;
  bool in_errors_file = false;
  bool was_openai = false;
  uint32_t time = 0;
  int64_t index = 0;
  uint64_t digest = 0;
  Hash128 id;
  int64_t end = 0;
  uint32_t record_hash = 0;
  uint32_t num_prompt_tokens = 0;
  uint32_t num_output_tokens = 0;
};

// Returns the name of the job file of this output.
std::string JobPath(const std::string& output_path);

// Reads a job file. Passes each valid entry to `on_entry`. Returns the header, and sets `size` to the number of bytes
// of the header and the valid entries. Throws ConfigError if the file cannot be read or has no valid header.
nlohmann::ordered_json ReadJob(const std::string& path, const std::function<void(const JobEntry&)>& on_entry,
                               int64_t& size);

class JobFile {
 public:
  // Writes a new file with this header under a temporary name. Rename gives it its own name, so that a job file always
  // has a whole header. Throws ResourceError.
  static std::unique_ptr<JobFile> Create(const std::string& path, const nlohmann::ordered_json& header);
  // Opens an existing file and cuts it to `size`, as ReadJob has set it. Throws ConfigError and ResourceError.
  static std::unique_ptr<JobFile> Open(const std::string& path, int64_t size);

  // Flushes the file and gives it its own name.
  void Rename();
  // Appends an entry. The functions throw ResourceError.
  void Append(const JobEntry& entry);
  void Sync() { file_.Sync(); }
  void CheckExists() const { file_.CheckExists(); }

 private:
  JobFile(std::string path, const std::string& actual_path) : path_(std::move(path)), file_(actual_path) {}

  std::string path_;
  OutputFile file_;
};

}  // namespace vllm::app
