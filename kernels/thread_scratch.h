// ThreadScratch: memory for a kernel's intermediate sums that are too large for the stack.
#pragma once

#include <cstddef>

namespace vllm::kernels {

inline constexpr size_t kThreadScratchBytes = 512 << 10;

// Returns kThreadScratchBytes bytes, page-aligned, which belong to the calling thread. The contents are unspecified.
// Throws std::bad_alloc, in a thread's first call only.
void* ThreadScratch();

}  // namespace vllm::kernels
