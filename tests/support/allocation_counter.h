// Counts this thread's calls of operator new, and the bytes they asked for, in a test program that links
// allocation_counter.cc.
#pragma once

#include <cstdint>

namespace vllm::testing {

uint64_t NumAllocations();
uint64_t AllocatedBytes();  // freed ones too

}  // namespace vllm::testing
