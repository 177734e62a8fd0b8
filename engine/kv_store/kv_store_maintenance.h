// Functions for the user who looks after the KV block store: list, clear and verify. They work on the segments of all
// models and may run while other processes use the store. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace vllm {

struct KVSegmentInfo {
  std::string name;      // of the file
  std::string identity;  // 32 hexadecimal digits: the hash of KVBlockStore::Options::identity; "" if problem is not ""
  std::string label;     // KVBlockStore::Options::label, escaped
  int64_t block_size = 0;
  int64_t payload_bytes = 0;
  int64_t num_blocks = 0;
  int64_t file_bytes = 0;
  std::chrono::system_clock::time_point last_used;
  bool is_in_use = false;  // a process appends to it
  std::string problem;     // why the segment is not used, or ""
};

struct KVVerification {
  int64_t num_segments = 0;
  int64_t num_blocks = 0;             // with correct checksums
  int64_t num_damaged_blocks = 0;     // in valid segments
  std::vector<std::string> problems;  // one line for each damaged segment, or segment with damaged blocks
  int64_t num_removed = 0;            // segments deleted and blocks erased
};

struct KVClearing {
  int64_t num_segments = 0;
  int64_t bytes = 0;
  std::vector<std::string> problems;  // one line for each file with the name of a segment that could not be deleted
};

// All functions throw ModelError if the directory must not be trusted. They return an empty result if it does not
// exist.

// Returns all segments, sorted by file name. Reads their heads, not their payloads.
std::vector<KVSegmentInfo> ListKVSegments(const std::string& directory);

// Deletes all segments, including those in use: their writers notice it and start new segments.
KVClearing ClearKVSegments(const std::string& directory);

// Reads all blocks and verifies their checksums. With remove_damaged, erases damaged blocks, and deletes segments with
// a damaged header unless a process writes them. Reports a segment of another version as damaged.
KVVerification VerifyKVSegments(const std::string& directory, bool remove_damaged);

}  // namespace vllm
