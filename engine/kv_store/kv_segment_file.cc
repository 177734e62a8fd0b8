#include "engine/kv_store/kv_segment_file.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

namespace vllm {
namespace {

// The largest part of the head table that is read at once, unless a head is larger.
constexpr uint64_t kScanBytes = uint64_t{64} << 10;

// Reads until `bytes` is full or the file ends. Returns the number of bytes read, or -1 after an I/O error.
int64_t ReadAt(int fd, std::span<std::byte> bytes, uint64_t offset) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t num_read = pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read < 0) return -1;
    if (num_read == 0) break;
    done += static_cast<size_t>(num_read);
  }
  return static_cast<int64_t>(done);
}

// Returns 0 or an errno value.
int WriteAt(int fd, std::span<const std::byte> bytes, uint64_t offset) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t written = pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return written < 0 ? errno : EIO;
    done += static_cast<size_t>(written);
  }
  return 0;
}

}  // namespace

KVSegmentFile::KVSegmentFile(tokenizer::UniqueFd fd) : fd_(std::move(fd)) {
  std::array<std::byte, kKVSegmentHeaderBytes> bytes;
  const int64_t num_read = ReadAt(fd_.get(), bytes, 0);
  if (num_read < 0) return;
  if (num_read < static_cast<int64_t>(bytes.size())) {
    state_ = State::kIncomplete;
    return;
  }
  const std::optional<KVSegmentHeader> header = DecodeKVHeader(bytes);
  state_ = header ? State::kValid : State::kInvalid;
  if (header) header_ = *header;
}

uint64_t KVSegmentFile::FileBytes() const {
  struct stat status {};
  return fstat(fd(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

bool KVSegmentFile::IsUnlinked() const {
  struct stat status {};
  return fstat(fd(), &status) == 0 && status.st_nlink == 0;
}

void KVSegmentFile::Touch() const { futimens(fd(), nullptr); }

bool KVSegmentFile::LockForWriting() const { return flock(fd(), LOCK_EX | LOCK_NB) == 0; }

int KVSegmentFile::WriteHeader(int fd, KVSegmentHeader& header) { return WriteAt(fd, EncodeKVHeader(header), 0); }

void KVSegmentFile::ScanHeads(uint32_t first, uint32_t end,
                              const std::function<void(uint32_t slot, const KVSlotHead& head)>& f) {
  const uint64_t head_bytes = header_.HeadBytes();
  const auto max_heads = static_cast<uint32_t>(std::max<uint64_t>(1, kScanBytes / head_bytes));
  while (first < end) {
    const uint32_t count = std::min(end - first, max_heads);
    heads_.resize(count * head_bytes);
    const int64_t num_read = ReadAt(fd(), heads_, header_.HeadOffset(first));
    for (uint32_t i = 0; i < count && static_cast<int64_t>((i + 1) * head_bytes) <= num_read; ++i) {
      const auto head = DecodeKVHead(header_, std::span<const std::byte>(heads_).subspan(i * head_bytes, head_bytes));
      if (head) f(first + i, *head);
    }
    if (num_read < static_cast<int64_t>(heads_.size())) return;
    first += count;
  }
}

KVSegmentFile::SlotState KVSegmentFile::Read(uint32_t slot, const KVBlockKey* key, std::span<std::byte> payload) {
  heads_.resize(header_.HeadBytes());
  int64_t num_read = ReadAt(fd(), heads_, header_.HeadOffset(slot));
  if (num_read < 0) return SlotState::kUnreadable;
  heads_.resize(static_cast<size_t>(num_read));
  if (std::all_of(heads_.begin(), heads_.end(), [](std::byte byte) { return byte == std::byte{0}; })) {
    return SlotState::kEmpty;
  }
  if (heads_.size() < header_.HeadBytes()) return SlotState::kDamaged;
  const std::optional<KVSlotHead> head = DecodeKVHead(header_, heads_);
  if (!head) return SlotState::kDamaged;
  if (key != nullptr && !head->Matches(*key)) return SlotState::kOtherBlock;
  num_read = ReadAt(fd(), payload, header_.PayloadOffset(slot));
  if (num_read < 0) return SlotState::kUnreadable;
  if (num_read < static_cast<int64_t>(payload.size())) return SlotState::kDamaged;
  return KVPayloadChecksum(payload) == head->payload_checksum ? SlotState::kMatches : SlotState::kDamaged;
}

int KVSegmentFile::Write(uint32_t slot, const KVBlockKey& key, std::span<const std::byte> payload) {
  heads_.resize(header_.HeadBytes());
  EncodeKVHead(header_, key, payload, heads_);
  // The head comes last: a reader that sees it finds the payload, too. After a crash of the machine the payload may be
  // missing; then its checksum is wrong.
  int error = WriteAt(fd(), payload, header_.PayloadOffset(slot));
  if (error == 0) error = WriteAt(fd(), heads_, header_.HeadOffset(slot));
  if (error == 0) return 0;
  // Free the space of the partial payload. If this fails as well, the slot stays empty and wastes its space.
  const uint64_t end = header_.PayloadOffset(slot);
  if (FileBytes() > end && ftruncate(fd(), static_cast<off_t>(end)) != 0) return error;
  return error;
}

void KVSegmentFile::Erase(uint32_t slot) {
  heads_.assign(header_.HeadBytes(), std::byte{0});
  WriteAt(fd(), heads_, header_.HeadOffset(slot));
}

}  // namespace vllm
