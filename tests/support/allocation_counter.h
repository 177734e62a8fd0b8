// Counts this thread's calls of operator new in a test program that links allocation_counter.cc.
#pragma once

#include <cstdint>

namespace vllm::testing {

uint64_t NumAllocations();

}  // namespace vllm::testing
