// PrivateDirectory: an open directory that only its owner, the effective user, can change. Files in it are opened
// relative to its descriptor and never through symbolic links, so nobody else can replace them. Movable; any thread may
// call the const functions.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/formats/regular_file.h"

namespace vllm {

class PrivateDirectory {
 public:
  // Opens `path`. Returns nullopt if it does not exist. Throws ModelError `packed weights <path>: not used: <why>` if
  // it is a symbolic link or not a directory, belongs to another user, is writable by group or others, or cannot be
  // opened.
  static std::optional<PrivateDirectory> Open(const std::string& path);

  int fd() const { return fd_.get(); }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  // Opens a regular file for reading. Returns nullopt if it does not exist. Throws ModelError if the file is a symbolic
  // link, is not a regular file, belongs to another user, is writable by group or others, or cannot be opened.
  std::optional<tokenizer::RegularFile> OpenFile(const std::string& name) const;
  // Returns the names of all entries except "." and "..", in unspecified order, or an empty list if the
  // directory cannot be read.
  std::vector<std::string> Names() const;

 private:
  PrivateDirectory(tokenizer::UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  tokenizer::UniqueFd fd_;
  std::string path_;
};

}  // namespace vllm
