// PartialBlob: the temporary file of one download, in blobs/ under ETAG.RANDOM.vllmcli-part, and its ResumeState in
// ETAG.RANDOM.vllmcli-state. huggingface_hub and llama.cpp ignore these names. Owned by FileDownload; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "app/hub/pull/byte_ranges.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {

class PartialBlob {
 public:
  // Continues the partial blob of an earlier process that has the most bytes, or creates one. Without a lock
  // (`is_locked` is false), takes one over only if the process that wrote it ran on this machine and has ended. With a
  // lock, removes the other partial blobs of this etag. Throws ResourceError.
  PartialBlob(std::filesystem::path blobs, std::string etag, int64_t size, bool is_locked);
  // Closes the file. Removes it if it has no bytes.
  ~PartialBlob();
  PartialBlob(const PartialBlob&) = delete;
  PartialBlob& operator=(const PartialBlob&) = delete;

  const ByteRanges& ranges() const { return ranges_; }
  bool is_complete() const { return ranges_.prefix() == size_; }
  // Returns true if bytes of an earlier process are in use.
  bool is_resumed() const { return is_resumed_; }

  // Stores bytes that have arrived. Throws ResourceError, for example if the disk is full.
  void Write(int64_t offset, std::string_view bytes);
  // Reads bytes back for the hash. Throws ResourceError unless all of them can be read.
  void Read(int64_t offset, std::span<char> bytes) const;
  // Writes the state for another process, if it has changed. Throws ResourceError.
  void SaveState();
  // Forgets all bytes.
  void Restart();
  // Flushes the file, renames it to blobs/ETAG and returns that path. REQUIRES: is_complete().
  std::filesystem::path Publish();
  // Removes the files.
  void Discard();

 private:
  bool TakeOver(bool is_locked);
  void Create();

  std::filesystem::path blobs_;
  std::string etag_;
  int64_t size_;
  std::filesystem::path path_;  // empty after Publish and Discard
  std::filesystem::path state_path_;
  tokenizer::UniqueFd fd_;
  ByteRanges ranges_;
  bool is_resumed_ = false;
  bool is_saved_ = true;
};

// Returns how many bytes of a blob an earlier download has stored.
int64_t StoredBytes(const std::filesystem::path& blobs, const std::string& etag, int64_t size);

// Returns a number that changes while any program downloads the blob: the total size and time of the files in blobs/
// whose name begins with the etag.
int64_t DownloadActivity(const std::filesystem::path& blobs, const std::string& etag);

// Removes partial blobs of this program that have not changed for a week and whose lock in `locks` is free.
void RemoveOldPartialBlobs(const std::filesystem::path& blobs, const std::filesystem::path& locks);

}  // namespace vllm::app
