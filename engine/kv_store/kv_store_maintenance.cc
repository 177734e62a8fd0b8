#include "engine/kv_store/kv_store_maintenance.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/kv_store/kv_directory.h"
#include "engine/kv_store/kv_segment_file.h"

namespace vllm {
namespace {

std::string Hex(const Hash128& hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint64_t word : {hash.hi, hash.lo}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[word >> shift & 15];
  }
  return text;
}

// Opens a segment, or sets `problem`.
KVSegmentFile Open(const KVDirectory& directory, const std::string& name, std::string& problem) {
  KVSegmentFile file;
  try {
    file = directory.OpenSegment(name);
  } catch (const ModelError& error) {
    problem = error.what();
    return file;
  }
  const std::string path = "KV disk cache " + Escape(directory.path() + "/" + name);
  if (file.state() == KVSegmentFile::State::kUnreadable) problem = path + ": cannot be read";
  if (file.state() == KVSegmentFile::State::kIncomplete) problem = path + ": damaged: too short for a header";
  if (file.state() == KVSegmentFile::State::kInvalid) problem = path + ": damaged header, or of another version";
  return file;
}

struct SlotCounts {
  int64_t num_valid = 0;
  std::vector<uint32_t> damaged;
};

SlotCounts VerifySlots(KVSegmentFile& file) {
  using SlotState = KVSegmentFile::SlotState;
  const KVSegmentHeader& header = file.header();
  // If the file is too short for any payload, every head that is not empty is damaged, and no buffer is needed.
  std::vector<std::byte> payload(header.NumSlotsWithin(file.FileBytes()) > 0 ? header.payload_bytes : 0);
  SlotCounts counts;
  for (uint32_t slot = 0; slot < header.num_slots; ++slot) {
    SlotState state = file.Read(slot, nullptr, payload);
    // The writer may have been writing the head.
    if (state == SlotState::kDamaged) state = file.Read(slot, nullptr, payload);
    if (state == SlotState::kMatches) ++counts.num_valid;
    if (state == SlotState::kDamaged) counts.damaged.push_back(slot);
  }
  return counts;
}

}  // namespace

std::vector<KVSegmentInfo> ListKVSegments(const std::string& path) {
  std::vector<KVSegmentInfo> segments;
  const std::optional<KVDirectory> directory = KVDirectory::Open(path);
  if (!directory) return segments;
  for (const KVDirectory::File& file : directory->List()) {
    if (!file.is_segment) continue;
    KVSegmentInfo info;
    info.name = file.name;
    info.file_bytes = file.bytes;
    info.last_used =
        std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::seconds(file.modified.tv_sec) + std::chrono::nanoseconds(file.modified.tv_nsec)));
    info.is_in_use = directory->IsInUse(file.name);
    KVSegmentFile segment = Open(*directory, file.name, info.problem);
    if (segment.state() == KVSegmentFile::State::kValid) {
      const KVSegmentHeader& header = segment.header();
      info.identity = Hex(header.identity);
      info.label = Escape(header.Label());
      info.block_size = header.block_size;
      info.payload_bytes = static_cast<int64_t>(header.payload_bytes);
      segment.ScanHeads(0, header.NumSlotsWithin(segment.FileBytes()),
                        [&](uint32_t, const KVSlotHead&) { ++info.num_blocks; });
    }
    segments.push_back(std::move(info));
  }
  return segments;
}

KVClearing ClearKVSegments(const std::string& path) {
  KVClearing clearing;
  const std::optional<KVDirectory> directory = KVDirectory::Open(path);
  if (!directory) return clearing;
  // Without the lock, another process may create a segment at the same time. The user's wish to clear is more
  // important.
  std::string error;
  const tokenizer::UniqueFd lock = directory->Lock(error);
  for (const KVDirectory::File& file : directory->List()) {
    if (!file.is_segment) continue;
    if (directory->Delete(file.name)) {
      ++clearing.num_segments;
      clearing.bytes += file.bytes;
    } else {
      clearing.problems.push_back("KV disk cache " + Escape(path + "/" + file.name) + ": cannot be deleted");
    }
  }
  return clearing;
}

KVVerification VerifyKVSegments(const std::string& path, bool remove_damaged) {
  KVVerification result;
  const std::optional<KVDirectory> directory = KVDirectory::Open(path);
  if (!directory) return result;
  for (const KVDirectory::File& file : directory->List()) {
    if (!file.is_segment) continue;
    ++result.num_segments;
    std::string problem;
    KVSegmentFile segment = Open(*directory, file.name, problem);
    if (segment.state() == KVSegmentFile::State::kValid) {
      const SlotCounts counts = VerifySlots(segment);
      const auto num_damaged = static_cast<int64_t>(counts.damaged.size());
      result.num_blocks += counts.num_valid;
      result.num_damaged_blocks += num_damaged;
      if (num_damaged == 0) continue;
      problem = "KV disk cache " + Escape(path + "/" + file.name) + ": " + std::to_string(num_damaged) + " of " +
                std::to_string(num_damaged + counts.num_valid) + " blocks are damaged";
      if (remove_damaged) {
        KVSegmentFile update = directory->OpenSegmentForUpdate(file.name);
        if (update.state() == KVSegmentFile::State::kValid && update.header().checksum == segment.header().checksum) {
          for (const uint32_t slot : counts.damaged) update.Erase(slot);
          result.num_removed += num_damaged;
        }
      }
    } else if (remove_damaged && (segment.state() == KVSegmentFile::State::kInvalid ||
                                  segment.state() == KVSegmentFile::State::kIncomplete)) {
      std::string error;
      const tokenizer::UniqueFd lock = directory->Lock(error);
      if (lock.valid() && !directory->IsInUse(file.name) && directory->Delete(file.name)) ++result.num_removed;
    }
    result.problems.push_back(std::move(problem));
  }
  return result;
}

}  // namespace vllm
