// Counts the allocations of the calling thread. A test program that links allocation_counter.cc gets an operator new
// that counts calls and bytes, and an mmap that counts calls from the program's own code, for example from
// AlignedBuffer.
#pragma once

#include <cstdint>

namespace vllm::testing_support {

uint64_t NumAllocations();
uint64_t AllocatedBytes();  // includes bytes that have been freed
uint64_t NumMappings();     // calls of mmap; always 0 under ASan and TSan, which replace mmap themselves

}  // namespace vllm::testing_support
