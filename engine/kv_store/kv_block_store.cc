#include "engine/kv_store/kv_block_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

constexpr std::chrono::minutes kTouchInterval{1};
// How often a segment is scanned for the head of its last payload.
constexpr int64_t kMaxScansOfSameSize = 8;
// How long to wait after the directory was locked or full. Listing it for each block would be slow.
constexpr std::chrono::seconds kRetryInterval{1};

}  // namespace

KVBlockStore::KVBlockStore(Options options)
    : options_(std::move(options)),
      identity_(HashBytes128(options_.identity)),
      num_slots_(KVSlotsFor(static_cast<uint64_t>(KVDirectory::SegmentBytes(options_.max_bytes)),
                            static_cast<uint64_t>(options_.payload_bytes), static_cast<uint32_t>(options_.block_size))),
      directory_(options_.directory) {
  std::string error;
  const tokenizer::UniqueFd lock = directory_.Lock(error);
  if (!error.empty()) TurnWritingOff(error);
  if (lock.valid()) MakeRoom(0);
  Refresh();
}

bool KVBlockStore::Read(const KVBlockKey& key, std::span<std::byte> payload) {
  if (static_cast<int64_t>(payload.size()) != options_.payload_bytes) return false;
  const auto found = index_.find(key.hash);
  if (found == index_.end()) return false;
  const Location location = found->second;
  Segment& segment = *location.segment;
  KVSegmentFile* file = FileOf(segment);
  const KVSegmentFile::SlotState state =
      file == nullptr ? KVSegmentFile::SlotState::kUnreadable : file->Read(location.slot, &key, payload);
  if (state == KVSegmentFile::SlotState::kMatches) {
    const Clock::time_point now = Clock::now();
    if (!segment.touched || now - *segment.touched >= kTouchInterval) {
      file->Touch();
      segment.touched = now;
    }
    ++stats_.num_blocks_read;
    stats_.bytes_read += options_.payload_bytes;
    return true;
  }
  ++stats_.num_blocks_rejected;
  {
    const std::lock_guard guard(index_mutex_);
    index_.erase(found);
  }
  if (state == KVSegmentFile::SlotState::kDamaged) {
    // Otherwise every process would find the block again and write it once more.
    try {
      KVSegmentFile update = directory_.OpenSegmentForUpdate(segment.name);
      if (update.state() == KVSegmentFile::State::kValid && update.header().checksum == segment.header.checksum) {
        update.Erase(location.slot);
      }
    } catch (const ModelError& error) {
      WarnAboutFile(error.what());
    }
  }
  return false;
}

bool KVBlockStore::Write(const KVBlockKey& key, std::span<const std::byte> payload) {
  if (!is_writing_on_ || Contains(key.hash) || num_blocks() >= options_.max_indexed_blocks) return false;
  if (static_cast<int64_t>(payload.size()) != options_.payload_bytes ||
      static_cast<int64_t>(key.token_ids.size()) != options_.block_size) {
    return false;
  }
  // Another process may have cleared the directory.
  if (writer_ && (writer_->next_slot >= writer_->file.header().num_slots || writer_->file.IsUnlinked())) {
    writer_.reset();
  }
  if (!writer_ && !OpenWriter()) return false;
  // OpenWriter refreshes the index.
  if (Contains(key.hash)) return false;
  const int error = writer_->file.Write(writer_->next_slot, key, payload);
  if (error != 0) {
    TurnWritingOff(std::strerror(error));
    return false;
  }
  const uint32_t slot = writer_->next_slot++;
  AddBlock(*writer_->segment, slot, key.hash);
  writer_->segment->next_slot = writer_->next_slot;
  ++stats_.num_blocks_written;
  stats_.bytes_written += options_.payload_bytes;
  return true;
}

void KVBlockStore::Refresh() {
  last_refresh_ = Clock::now();
  const std::vector<KVDirectory::File> files = directory_.List();
  std::vector<std::string> deleted;
  for (const auto& [name, segment] : segments_) {
    const bool is_present = std::binary_search(files.begin(), files.end(), KVDirectory::File{name, 0, {}, true, true},
                                               [](const auto& a, const auto& b) { return a.name < b.name; });
    if (!is_present) deleted.push_back(name);
  }
  for (const std::string& name : deleted) Forget(name);
  for (const KVDirectory::File& file : files) {
    if (!file.is_segment) continue;
    Segment& segment = segments_[file.name];
    if (segment.is_ignored || (writer_ && writer_->segment == &segment)) continue;
    segment.name = file.name;
    if (segment.has_header) {
      const auto bytes = static_cast<uint64_t>(file.bytes);
      const bool is_complete = segment.next_slot >= segment.header.NumSlotsWithin(bytes);
      const bool is_same_size = segment.seen_bytes == file.bytes;
      if (is_complete && (is_same_size || segment.next_slot >= segment.header.num_slots)) continue;
      // The head of the last payload appears a moment after the payload, or never, if the writer was killed.
      if (is_same_size && segment.num_scans >= kMaxScansOfSameSize) continue;
    }
    Scan(segment, file.bytes);
  }
}

void KVBlockStore::RefreshAfter(std::chrono::milliseconds interval) {
  if (Clock::now() - last_refresh_ >= interval) Refresh();
}

std::string KVBlockStore::TakeWarning() {
  if (warnings_.empty()) return "";
  std::string warning = std::move(warnings_.front());
  warnings_.pop_front();
  return warning;
}

bool KVBlockStore::IsOurs(const KVSegmentHeader& header) const {
  return header.identity == identity_ && header.payload_bytes == static_cast<uint64_t>(options_.payload_bytes) &&
         header.block_size == static_cast<uint64_t>(options_.block_size);
}

void KVBlockStore::Scan(Segment& segment, int64_t file_bytes) {
  KVSegmentFile file;
  try {
    file = directory_.OpenSegment(segment.name);
  } catch (const ModelError& error) {
    WarnAboutFile(error.what());
    segment.is_ignored = true;
    return;
  }
  // The header of a new segment appears soon.
  if (file.state() == KVSegmentFile::State::kIncomplete) return;
  if (file.state() != KVSegmentFile::State::kValid || !IsOurs(file.header())) {
    segment.is_ignored = true;
    return;
  }
  if (segment.has_header && segment.header.checksum != file.header().checksum) {
    // The file was replaced. Reads fail, because the heads do not match the header.
    segment.is_ignored = true;
    return;
  }
  segment.header = file.header();
  segment.has_header = true;
  segment.num_scans = segment.seen_bytes == file_bytes ? segment.num_scans + 1 : 1;
  segment.seen_bytes = file_bytes;
  const uint32_t end = segment.header.NumSlotsWithin(file.FileBytes());
  if (segment.next_slot >= end) return;
  // A last slot without a valid head is scanned again next time, because its head may just be written.
  uint32_t next_slot = segment.next_slot;
  file.ScanHeads(segment.next_slot, end, [&](uint32_t slot, const KVSlotHead& head) {
    AddBlock(segment, slot, head.hash);
    next_slot = slot + 1;
  });
  segment.next_slot = next_slot;
}

void KVBlockStore::AddBlock(Segment& segment, uint32_t slot, const BlockHash& hash) {
  if (num_blocks() >= options_.max_indexed_blocks) return;
  const std::lock_guard guard(index_mutex_);
  if (index_.try_emplace(hash, Location{&segment, slot}).second) segment.blocks.push_back(hash);
}

void KVBlockStore::Forget(const std::string& segment_name) {
  const auto found = segments_.find(segment_name);
  if (found == segments_.end()) return;
  for (const BlockHash& hash : found->second.blocks) {
    const auto entry = index_.find(hash);
    if (entry == index_.end() || entry->second.segment != &found->second) continue;
    const std::lock_guard guard(index_mutex_);
    index_.erase(entry);
  }
  if (writer_ && writer_->segment == &found->second) writer_.reset();
  if (open_name_ == segment_name) {
    open_file_ = {};
    open_name_.clear();
  }
  segments_.erase(found);
}

KVSegmentFile* KVBlockStore::FileOf(const Segment& segment) {
  if (open_name_ == segment.name) return &open_file_;
  open_name_.clear();
  try {
    open_file_ = directory_.OpenSegment(segment.name);
  } catch (const ModelError& error) {
    WarnAboutFile(error.what());
    return nullptr;
  }
  if (open_file_.state() != KVSegmentFile::State::kValid) return nullptr;
  if (open_file_.header().checksum != segment.header.checksum) return nullptr;
  open_name_ = segment.name;
  return &open_file_;
}

bool KVBlockStore::MakeRoom(int64_t bytes) {
  const KVDirectory::Eviction eviction = directory_.MakeRoom(bytes, options_.max_bytes);
  stats_.bytes_evicted += eviction.bytes;
  for (const std::string& name : eviction.names) Forget(name);
  return eviction.has_room;
}

bool KVBlockStore::OpenWriter() {
  if (Clock::now() < next_attempt_) return false;
  KVSegmentHeader header;
  header.identity = identity_;
  header.payload_bytes = static_cast<uint64_t>(options_.payload_bytes);
  header.block_size = static_cast<uint32_t>(options_.block_size);
  header.num_slots = num_slots_;
  options_.label.copy(header.label.data(), header.label.size());
  const auto segment_bytes = static_cast<int64_t>(header.FileBytes());
  if (segment_bytes > options_.max_bytes) {
    TurnWritingOff("the limit is too small for one block (" + std::to_string(options_.max_bytes) + " bytes, needs " +
                   std::to_string(segment_bytes) + ")");
    return false;
  }
  std::string error;
  const tokenizer::UniqueFd lock = directory_.Lock(error);
  if (!error.empty()) TurnWritingOff(error);
  if (!lock.valid()) {
    next_attempt_ = Clock::now() + kRetryInterval;
    return false;
  }
  Refresh();
  // Fill the segments that earlier processes left, the most recently used one first. Otherwise every short chat would
  // leave a file.
  std::vector<KVDirectory::File> files = directory_.List();
  std::sort(files.begin(), files.end(), [](const KVDirectory::File& a, const KVDirectory::File& b) {
    return std::pair(a.modified.tv_sec, a.modified.tv_nsec) > std::pair(b.modified.tv_sec, b.modified.tv_nsec);
  });
  bool has_room = true;
  for (const KVDirectory::File& file : files) {
    if (!ResumeSegment(file)) continue;
    has_room = MakeRoom(0);
    if (has_room) return true;
    writer_.reset();
    break;
  }
  if (!has_room || !MakeRoom(segment_bytes)) {
    next_attempt_ = Clock::now() + kRetryInterval;
    return false;
  }
  Writer writer;
  std::string name;
  try {
    const int error_number = directory_.CreateSegment(header, name, writer.file);
    if (error_number != 0) error = std::strerror(error_number);
  } catch (const ModelError& untrusted) {
    // Some file systems ignore the mode of new files.
    error = untrusted.what();
  }
  if (!error.empty()) {
    TurnWritingOff(error);
    return false;
  }
  Segment& segment = segments_[name];
  segment.name = name;
  segment.header = writer.file.header();
  segment.has_header = true;
  writer.segment = &segment;
  writer_ = std::move(writer);
  return true;
}

bool KVBlockStore::ResumeSegment(const KVDirectory::File& file) {
  const auto found = segments_.find(file.name);
  if (found == segments_.end()) return false;
  Segment& segment = found->second;
  if (segment.is_ignored || !segment.has_header || segment.header.num_slots > num_slots_) return false;
  if (segment.next_slot >= segment.header.num_slots) return false;
  try {
    Writer writer;
    writer.file = directory_.OpenSegmentForUpdate(file.name);
    if (writer.file.state() != KVSegmentFile::State::kValid || !writer.file.LockForWriting()) return false;
    if (writer.file.header().checksum != segment.header.checksum) return false;
    // Skip a payload whose writer was killed, complete or not.
    const uint64_t bytes = writer.file.FileBytes();
    uint32_t next_slot = segment.header.NumSlotsWithin(bytes);
    // Heads without payloads exist only if the file was truncated. They would hide new blocks with the same hashes.
    std::vector<uint32_t> without_payload;
    writer.file.ScanHeads(next_slot, segment.header.num_slots,
                          [&](uint32_t slot, const KVSlotHead&) { without_payload.push_back(slot); });
    for (const uint32_t slot : without_payload) writer.file.Erase(slot);
    if (next_slot < segment.header.num_slots && bytes > segment.header.PayloadOffset(next_slot)) ++next_slot;
    next_slot = std::max(next_slot, segment.next_slot);
    if (next_slot >= segment.header.num_slots) return false;
    writer.segment = &segment;
    writer.next_slot = next_slot;
    writer_ = std::move(writer);
    return true;
  } catch (const ModelError& error) {
    WarnAboutFile(error.what());
    return false;
  }
}

void KVBlockStore::WarnAboutFile(const std::string& warning) {
  if (!has_warned_about_file_) warnings_.push_back(warning);
  has_warned_about_file_ = true;
}

void KVBlockStore::TurnWritingOff(const std::string& why) {
  if (is_writing_on_) {
    warnings_.push_back("KV disk cache " + Escape(options_.directory) + ": nothing more is written: " + why);
  }
  is_writing_on_ = false;
  writer_.reset();
}

}  // namespace vllm
