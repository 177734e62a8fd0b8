// PackedFile: a file with packed weights. Mapping the file avoids packing the weights again and lets processes share
// the pages. The header and the data are verified before use. Opened by the executor's thread during load, then owned
// by the buffers that point into it. Immutable; any thread may read.
//
//   file    := header zeros data                   numbers are little-endian
//   header  := "VLLMPACK" layout:u32 description_bytes:u32 num_entries:u64 file_bytes:u64 header_hash:u64
//              description entry{num_entries} piece_hash:u64{num_pieces}
//   entry   := name_hash:u64 bytes:u64
//   data    := bytes of each entry, in order, each at the next multiple of 4096 after the header or the previous entry;
//              zeros in between; file_bytes is the end of the last entry
// header_hash is XXH3-64 of the header with zeros in place of header_hash. piece_hash i is XXH3-64 of the data in bytes
// [i * 4 MiB, (i + 1) * 4 MiB) of the file; num_pieces is file_bytes / 4 MiB, rounded up. The description identifies
// the weights and the way they were packed; a file with another description is rejected. Example: with two entries of
// 4096 and 100 bytes and a description of 30 bytes, the header has 40 + 30 + 2 * 16 + 8 = 110 bytes, the entries are at
// 4096 and 8192, and file_bytes is 8292.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/mapped_file.h"
#include "engine/model_loader/quantization/checkpoint_matrix.h"

namespace vllm {

struct PackedEntry {
  uint64_t name_hash = 0;
  std::span<const std::byte> data;
};

class PackedFile {
 public:
  // Throws ModelError if the file cannot be opened, is damaged, or has another layout version or description, and
  // ResourceError if it cannot be mapped. `for_each` may use several threads.
  PackedFile(const std::string& path, std::string_view description, const ForEach& for_each);
  // Does the same with a file that is already open. Error messages show `path`.
  PackedFile(tokenizer::RegularFile file, const std::string& path, std::string_view description,
             const ForEach& for_each);

  std::span<const PackedEntry> entries() const { return entries_; }
  int64_t size_bytes() const { return static_cast<int64_t>(file_.bytes().size()); }

 private:
  MappedFile file_;
  std::vector<PackedEntry> entries_;
};

// Returns the size of the file that WritePackedFile writes.
int64_t PackedFileBytes(std::string_view description, std::span<const PackedEntry> entries);
// Writes a complete file to `fd`, an empty file opened for writing; error messages show `path`. Whole pages of entries
// that begin on a page are written past the page cache, if the file system can. Throws ResourceError if the file cannot
// be written, for example because the disk is full.
void WritePackedFile(int fd, const std::string& path, std::string_view description,
                     std::span<const PackedEntry> entries, const ForEach& for_each);

}  // namespace vllm
