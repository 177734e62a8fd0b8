// BatchInput: what the rows of a batch are read from: a regular file, a FIFO or device, which is read as data arrives,
// or text files. Owned by the batch command; main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "app/batch/input/record_source.h"
#include "app/batch/input/row_parser.h"
#include "app/batch/input/row_selection.h"
#include "app/batch/job/batch_job.h"
#include "app/cli/settings.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

// Returns the delimiter of a table, or 0.
char DelimiterOf(InputFormat format);

class InputFile {
 public:
  // Opens the file; "-" is standard input. Waits for the writer of a FIFO. Throws ModelError, ResourceError and
  // Interrupted.
  explicit InputFile(const std::string& path);

  int fd() const { return fd_; }
  // Returns the size of a regular file, else 0.
  int64_t size() const;

 private:
  void AwaitWriter() const;

  tokenizer::UniqueFd owned_;
  int fd_ = -1;
};

struct BatchInput {
  std::string name;
  InputFormat format = InputFormat::kJsonLines;
  std::unique_ptr<InputFile> file;  // null if the rows are files
  std::unique_ptr<RecordSource> records;
  std::optional<JobInput> files;  // if the rows are files: their number and the digest of their paths

  int64_t size() const { return file == nullptr ? 0 : file->size(); }
  bool is_regular_file() const { return size() > 0; }
  int fd() const { return file == nullptr ? -1 : file->fd(); }
};

// Opens the inputs that the arguments name. Throws ConfigError, ModelError, ResourceError and Interrupted.
BatchInput OpenInput(const Settings& settings);

// Returns the rows to run: --shard, --sample and --limit. Counts the rows of the input for --sample. Throws ConfigError
// and ResourceError.
RowSelection SelectionOf(const Settings& settings, const BatchInput& input);

}  // namespace vllm::app
