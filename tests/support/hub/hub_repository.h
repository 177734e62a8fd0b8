// HubRepository: a model repository that the tests' hub serves. A value; immutable while a server has it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace vllm::testing_support {

std::string Sha256Hex(std::string_view bytes);
// Returns the id that git gives to a file with this content: SHA-1 of "blob SIZE\0" and the bytes.
std::string GitBlobId(std::string_view bytes);

// A file of a commit.
struct HubFile {
  std::shared_ptr<const std::string> bytes;
  bool is_lfs = false;
  std::string blob_id;  // git's id of the file, or of the LFS pointer
  std::string sha256;   // empty unless is_lfs

  // Returns what the hub sends as the ETag, and the cache uses as the blob's name.
  const std::string& etag() const { return is_lfs ? sha256 : blob_id; }
};
using HubFiles = std::map<std::string, HubFile>;

// Who may read a repository.
enum class HubAccess {
  kPublic,
  kGated,     // anyone may list the files, but only readers may download them
  kPrivate,   // does not exist for anyone except readers
  kDisabled,  // nobody may read it
};

struct HubRepository {
  std::string id;
  std::map<std::string, HubFiles> commits;      // by commit id, 40 hexadecimal digits
  std::map<std::string, std::string> branches;  // name to commit id
  std::map<std::string, std::string> tags;
  HubAccess access = HubAccess::kPublic;
  std::set<std::string> readers;  // tokens

  // Adds a commit with these files, moves `branch` to it, and returns its id, which depends on everything that was
  // added. Files are LFS files if their names end in .safetensors, .gguf, .bin or .pth, or if their path is in
  // `lfs_paths`.
  std::string Commit(const std::map<std::string, std::string>& files, const std::string& branch = "main",
                     const std::set<std::string>& lfs_paths = {});

  // Returns the id of the commit that a branch, tag or commit id names, or "" if there is none.
  std::string CommitOf(const std::string& revision) const;
  const HubFile& File(const std::string& path, const std::string& revision = "main") const;
};

// Returns a repository with one commit on the branch main.
HubRepository MakeRepository(const std::string& id, const std::map<std::string, std::string>& files);

// Returns `size` bytes that do not repeat at any distance that a mistaken offset could have. The same seed gives the
// same bytes.
std::string RandomBytes(size_t size, unsigned seed);

}  // namespace vllm::testing_support
