// Counts this thread's calls of operator new, and the bytes they asked for, in a test program that links
// allocation_counter.cc; and the calls of mmap by the program's own code, as AlignedBuffer makes them.
#pragma once

#include <cstdint>

namespace vllm::testing {

uint64_t NumAllocations();
uint64_t AllocatedBytes();  // freed ones too
uint64_t NumMappings();     // always 0 under sanitizers, which have an mmap of their own

}  // namespace vllm::testing
