#include "app/batch/input/text_files.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/config/errors.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

bool IsDirectory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool Exists(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0;
}

bool IsSameFile(const std::string& a, const std::string& b) {
  // Most names differ, and then no system call is necessary.
  const auto name_of = [](const std::string& path) { return std::string_view(path).substr(path.rfind('/') + 1); };
  struct stat a_status {};
  struct stat b_status {};
  return name_of(a) == name_of(b) && stat(a.c_str(), &a_status) == 0 && stat(b.c_str(), &b_status) == 0 &&
         a_status.st_dev == b_status.st_dev && a_status.st_ino == b_status.st_ino;
}

bool IsPattern(const std::string& path) { return path.find_first_of("*?[") != std::string::npos; }

// Appends the files below `root`. Does not follow links to directories, which could form a circle.
void AddDirectory(const std::string& root, std::vector<std::string>& paths) {
  // Visited in reverse, so that the names come out in order.
  std::vector<std::string> stack = {root};
  while (!stack.empty()) {
    const std::string path = std::move(stack.back());
    stack.pop_back();
    struct stat status {};
    const bool is_root = path == root;
    if ((is_root ? stat(path.c_str(), &status) : lstat(path.c_str(), &status)) != 0) continue;
    if (!S_ISDIR(status.st_mode)) {
      if (S_ISREG(status.st_mode) || (S_ISLNK(status.st_mode) && !IsDirectory(path))) paths.push_back(path);
      continue;
    }
    const std::vector<std::string> names = tokenizer::NamesInDirectory(path);
    for (auto name = names.rbegin(); name != names.rend(); ++name) {
      if (name->starts_with('.')) continue;
      std::string child = path;
      if (!child.ends_with('/')) child += '/';
      stack.push_back(child + *name);
    }
  }
}

}  // namespace

bool IsDirectoryOrPattern(const std::string& path) { return IsDirectory(path) || (IsPattern(path) && !Exists(path)); }

TextFiles::TextFiles(const std::vector<std::string>& paths, const std::vector<std::string>& left_out) {
  const auto is_left_out = [&](const std::string& path) {
    return std::any_of(left_out.begin(), left_out.end(),
                       [&](const std::string& other) { return IsSameFile(path, other); });
  };
  for (const std::string& path : paths) {
    const size_t old_size = paths_.size();
    if (IsPattern(path) && !Exists(path)) {
      glob_t matches{};
      const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&matches, globfree);
      if (glob(path.c_str(), 0, nullptr, &matches) == 0) {
        for (size_t i = 0; i < matches.gl_pathc; ++i) {
          if (!IsDirectory(matches.gl_pathv[i])) paths_.emplace_back(matches.gl_pathv[i]);
        }
      }
      if (paths_.size() == old_size) throw ModelError("batch input " + path + ": the pattern matches no file");
    } else if (IsDirectory(path)) {
      AddDirectory(path, paths_);
      if (paths_.size() == old_size) throw ModelError("batch input " + path + ": the directory has no files");
    } else if (Exists(path)) {
      paths_.push_back(path);
    } else {
      throw ModelError("batch input " + path + ": no such file");
    }
  }
  std::erase_if(paths_, is_left_out);
}

std::string TextFiles::names() const {
  std::string names;
  for (const std::string& path : paths_) {
    names += path;
    names += '\0';
  }
  return names;
}

RecordSource::Status TextFiles::Next(std::string_view& record) {
  if (next_ == paths_.size()) return Status::kEnd;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(paths_[next_++], kMaxRecordBytes, text_);
  if (!file.ok()) {
    if (file.is_out_of_resources()) throw ResourceError("reading " + paths_[next_ - 1] + ": " + file.error);
    error_ = file.error;
    return static_cast<size_t>(file.status.st_size) > kMaxRecordBytes ? Status::kTooLong : Status::kUnreadable;
  }
  bytes_consumed_ += static_cast<int64_t>(text_.size());
  record = text_;
  return Status::kRecord;
}

}  // namespace vllm::app
