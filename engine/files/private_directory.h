// PrivateDirectory: an open directory that only its owner, the effective user, can change. Files in it are opened
// relative to its descriptor and never through symbolic links, so nobody else can replace them. Movable; any thread may
// call the const functions.
//
// Errors are ModelErrors `<what> <path>: not used: <why>` and ResourceErrors `<what> <path>: cannot be created: <why>`.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/formats/regular_file.h"

namespace vllm {

// The most that group and others may do with the directory and its files.
enum class OtherUsers {
  kMayRead,
  kHaveNoAccess,
};

class PrivateDirectory {
 public:
  // Opens `path`. `what` describes the contents in error messages ("packed weights"). Returns nullopt if it does not
  // exist. Throws ModelError if it is a symbolic link or not a directory, belongs to another user, gives group or
  // others more access than `other_users` says, or cannot be opened.
  static std::optional<PrivateDirectory> Open(const std::string& path, const std::string& what, OtherUsers other_users);
  // Creates the directory with mode 0700, and its parents, if it does not exist. Then opens it. Also throws
  // ResourceError if it cannot be created.
  static PrivateDirectory OpenOrCreate(const std::string& path, const std::string& what, OtherUsers other_users);

  int fd() const { return fd_.get(); }
  std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

  // Opens a regular file for reading. Returns nullopt if it does not exist. Throws ModelError if the file is a symbolic
  // link, is not a regular file, belongs to another user, gives group or others too much access, or cannot be opened.
  std::optional<tokenizer::RegularFile> OpenFile(const std::string& name) const;
  // Opens a regular file for reading and writing. `flags` are added to those of open(): 0, O_CREAT or O_CREAT | O_EXCL.
  // A new file has mode 0600. Returns a RegularFile that is not ok if the file cannot be opened. Throws ModelError if
  // it must not be trusted.
  tokenizer::RegularFile OpenFileForUpdate(const std::string& name, int flags) const;

  // Returns the names of all entries except "." and "..", in unspecified order, or an empty list if the
  // directory cannot be read.
  std::vector<std::string> Names() const;

 private:
  PrivateDirectory(tokenizer::UniqueFd fd, std::string path, std::string what, OtherUsers other_users)
      : fd_(std::move(fd)), path_(std::move(path)), what_(std::move(what)), other_users_(other_users) {}
  [[noreturn]] void Reject(const std::string& path, const std::string& why) const;
  // REQUIRES: `status` is from fstat() of the open file.
  void CheckOwnerAndMode(const struct stat& status, const std::string& path, const char* remedy) const;

  tokenizer::UniqueFd fd_;
  std::string path_;
  std::string what_;
  OtherUsers other_users_;
};

}  // namespace vllm
