// What this machine gives at best, measured now on the calling thread: read bandwidth of a buffer larger than its
// caches, and the peak rate of the instructions that the kernels are made of.
#pragma once

#include "kernels/isa.h"

namespace vllm {

enum class Instruction : unsigned char { kFma, kDotBFloat16, kDotInt8 };

// Multiplies and adds a second, each counted as one; of 512-bit registers where `isa` has them. The dot products need
// Isa::kAvx512Bf16 and are 0 elsewhere.
double PeakRate(Isa isa, Instruction instruction);

// Bytes a second.
double ReadBandwidth();

}  // namespace vllm
