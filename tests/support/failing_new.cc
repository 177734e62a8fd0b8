// vllmcli in which allocation number $FAIL_ALLOCATION fails. Allocations are calls of operator new and mmap, counted
// from 1 over all threads since main() began. If $COUNT_ALLOCATIONS is set, the program prints their number when it
// ends.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "app/commands/commands.h"

namespace {

std::atomic<uint64_t> num_allocations{0};

uint64_t FailingNumber() {
  static const uint64_t number = [] {
    const char* text = std::getenv("FAIL_ALLOCATION");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 0;
  }();
  return number;
}

std::atomic<bool> in_main{false};

bool MayAllocate() {
  return !in_main.load(std::memory_order_relaxed) ||
         num_allocations.fetch_add(1, std::memory_order_relaxed) + 1 != FailingNumber();
}

void* Allocate(std::size_t size) noexcept { return MayAllocate() ? std::malloc(size > 0 ? size : 1) : nullptr; }

void* AllocateAligned(std::size_t size, std::align_val_t alignment) noexcept {
  const auto align = static_cast<std::size_t>(alignment);
  return MayAllocate() ? std::aligned_alloc(align, (size + align - 1) / align * align) : nullptr;
}

void* OrThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

int main(int argc, char** argv) {
  in_main = true;
  const int status = vllm::app::Main(argc, argv);
  in_main = false;
  if (std::getenv("COUNT_ALLOCATIONS") != nullptr) {
    std::fprintf(stderr, "allocations: %llu\n", static_cast<unsigned long long>(num_allocations.load()));
  }
  return status;
}

// AddressSanitizer and ThreadSanitizer replace mmap themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (!MayAllocate()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}
#endif

void* operator new(std::size_t size) { return OrThrow(Allocate(size)); }
void* operator new[](std::size_t size) { return OrThrow(Allocate(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return Allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) { return OrThrow(AllocateAligned(size, alignment)); }
void* operator new[](std::size_t size, std::align_val_t alignment) { return OrThrow(AllocateAligned(size, alignment)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
