// TextFiles: a RecordSource of text files, each of which is one row. Owned by the batch command; main thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/batch/input/record_source.h"

namespace vllm::app {

class TextFiles : public RecordSource {
 public:
  // `paths` are files, directories, whose files are read in the order of their names, subdirectories included, and
  // patterns such as "notes/*.txt". Names that begin with a dot are left out of directories and patterns, and so are
  // the files `left_out`. Throws ModelError if a path does not exist or a pattern matches nothing.
  explicit TextFiles(const std::vector<std::string>& paths, const std::vector<std::string>& left_out = {});

  int64_t num_files() const { return static_cast<int64_t>(paths_.size()); }
  // Returns all paths, each with a zero byte at its end.
  std::string names() const;

  Status Next(std::string_view& record) override;
  void Fill() override {}
  int64_t line() const override { return static_cast<int64_t>(next_); }
  int64_t bytes_consumed() const override { return bytes_consumed_; }
  int fd() const override { return -1; }
  std::string name() const override { return next_ == 0 ? "" : paths_[next_ - 1]; }
  // Returns why the last file was unreadable.
  const std::string& error() const { return error_; }

 private:
  std::vector<std::string> paths_;
  size_t next_ = 0;
  std::string text_;
  std::string error_;
  int64_t bytes_consumed_ = 0;
};

// Returns true if `path` is a directory, or a pattern that is not also the name of a file.
bool IsDirectoryOrPattern(const std::string& path);

}  // namespace vllm::app
