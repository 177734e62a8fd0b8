// KVDirectory: the directory of the KV block store, which several processes share, and the limit on its size. Owned by
// a KVBlockStore or a maintenance function; one thread at a time.
//
// The directory contains segment files, named by 16 hexadecimal digits and ".kvseg", and the empty file "lock". A
// process that appends to a segment holds an exclusive lock (flock) on it. Creating, resuming and deleting segments
// requires the lock of the file "lock". All other files count towards the size, but are neither read nor deleted.
#pragma once

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/files/private_directory.h"
#include "engine/kv_store/kv_segment_file.h"

namespace vllm {

class KVDirectory {
 public:
  struct File {
    std::string name;
    int64_t bytes = 0;
    timespec modified{};
    bool is_segment = false;  // has the name of a segment; may be of any type
    bool is_regular = false;
  };
  struct Eviction {
    bool has_room = false;
    std::vector<std::string> names;  // the deleted segments
    int64_t bytes = 0;               // their total size
  };

  // Creates the directory if it does not exist. Throws ModelError if it must not be trusted, and ResourceError if it
  // cannot be created.
  explicit KVDirectory(const std::string& path);
  // Opens an existing directory. Returns nullopt if it does not exist. Throws ModelError if it must not be trusted.
  static std::optional<KVDirectory> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // Returns the maximum size of new segments in a directory of max_bytes. Only segments of one block may be larger.
  static int64_t SegmentBytes(int64_t max_bytes);
  static bool IsSegmentName(std::string_view name);
  // Returns all files, sorted by name.
  std::vector<File> List() const;

  // Opens a segment for reading. Throws ModelError if the file must not be trusted or cannot be opened. The state of
  // the result is kUnreadable if the file does not exist.
  KVSegmentFile OpenSegment(const std::string& name) const;
  // Opens a segment for reading and writing, in the same way, but without an error if it cannot be opened for writing.
  KVSegmentFile OpenSegmentForUpdate(const std::string& name) const;
  // Creates a segment with this header and a random id, and locks it for writing. Returns 0 or an errno value.
  // REQUIRES: the directory is locked.
  int CreateSegment(KVSegmentHeader header, std::string& name, KVSegmentFile& file) const;

  // Locks the directory until the result is destroyed. Returns an invalid descriptor if another process keeps it locked
  // for half a second, or if it cannot be locked. In the second case, sets `error` to the reason.
  tokenizer::UniqueFd Lock(std::string& error) const;
  // Returns true if a process has locked the segment for writing.
  bool IsInUse(const std::string& name) const;
  // Deletes the least recently used segments until the directory has room for `bytes` more below `max_bytes`, and all
  // segments that are too short for a header. Does not delete segments that are being written, and counts them at their
  // full size. REQUIRES: the directory is locked.
  Eviction MakeRoom(int64_t bytes, int64_t max_bytes) const;
  // Deletes a file of any type except a directory. Does not follow a symbolic link. Returns false if it cannot.
  bool Delete(const std::string& name) const;

 private:
  KVDirectory(PrivateDirectory directory, const std::string& path) : directory_(std::move(directory)), path_(path) {}

  PrivateDirectory directory_;
  std::string path_;
};

}  // namespace vllm
