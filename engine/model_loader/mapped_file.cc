#include "engine/model_loader/mapped_file.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "kernels/threading/available_memory.h"

namespace vllm {
namespace {

[[noreturn]] void Fail(const std::string& path, const std::string& why) {
  throw ModelError("tensor file " + Escape(path) + ": " + why);
}

int64_t ModifiedNs(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1000000000 + status.st_mtim.tv_nsec;
}

// A mapped file that PathAt can find. If all slots are taken, further files are mapped but PathAt does not find them.
struct Mapping {
  std::atomic<const char*> path{nullptr};  // null: the slot is free
  std::atomic<const std::byte*> begin{nullptr};
  std::atomic<size_t> size{0};
};
std::array<Mapping, 256> g_mappings;
std::mutex g_mappings_mutex;  // guards writers; PathAt reads without it

void Register(std::span<const std::byte> bytes, const char* path) {
  std::lock_guard<std::mutex> lock(g_mappings_mutex);
  for (Mapping& mapping : g_mappings) {
    if (mapping.path.load() != nullptr) continue;
    mapping.begin = bytes.data();
    mapping.size = bytes.size();
    mapping.path = path;
    return;
  }
}

void Unregister(const char* path) {
  std::lock_guard<std::mutex> lock(g_mappings_mutex);
  for (Mapping& mapping : g_mappings) {
    if (mapping.path.load() == path) mapping.path = nullptr;
  }
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : MappedFile(tokenizer::OpenRegularFile(path), path) {}

MappedFile::MappedFile(tokenizer::RegularFile file, const std::string& path) : path_(path), shown_path_(Escape(path)) {
  if (file.is_out_of_resources()) throw ResourceError("tensor file " + shown_path_ + ": " + file.error);
  if (!file.ok()) Fail(path, file.error);
  const struct stat& status = file.status;
  modified_ns_ = ModifiedNs(status);
  inode_ = status.st_ino;
  if (status.st_size == 0) return;
  size_t size = static_cast<size_t>(status.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd.get(), 0);
  if (address == MAP_FAILED) {
    const std::string why = std::strerror(errno);
    const kernels::AvailableMemory available = kernels::ReadAvailableMemory();
    throw ResourceError("tensor file " + shown_path_ + ": cannot be mapped: " + why + " (" + std::to_string(size) +
                        " bytes, " + std::to_string(available.bytes) + " available, limited by " + available.bound +
                        ")");
  }
  bytes_ = {static_cast<const std::byte*>(address), size};
  Register(bytes_, shown_path_.c_str());
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  Unregister(shown_path_.c_str());
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::AdviseHugePages() const {
  if (!bytes_.empty()) madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_HUGEPAGE);
}

void MappedFile::DropPages() const {
  // Best effort: on failure the pages stay resident until the file is unmapped.
  if (!bytes_.empty()) madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_DONTNEED);
}

void MappedFile::CheckUnchanged() const {
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0 || status.st_ino != inode_) return;
  if (ModifiedNs(status) != modified_ns_ || static_cast<size_t>(status.st_size) != bytes_.size()) {
    Fail(path_, "was changed while it was being read");
  }
}

const char* MappedFile::PathAt(const void* address) {
  const auto* byte = static_cast<const std::byte*>(address);
  for (const Mapping& mapping : g_mappings) {
    const char* path = mapping.path.load();
    if (path == nullptr) continue;
    const std::byte* begin = mapping.begin.load();
    if (byte >= begin && byte < begin + mapping.size.load()) return path;
  }
  return nullptr;
}

}  // namespace vllm
