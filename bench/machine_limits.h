// The limits of this machine, measured on the calling thread: the read bandwidth of memory, and the peak rate of the
// instructions that the kernels use.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "tests/support/test_isa.h"

namespace vllm {

// Returns the instruction set to measure: $VLLMCLI_ISA, or else the best one of this CPU.
inline kernels::Isa BenchIsa() { return testing_support::IsaFromEnvironment().value_or(kernels::BestIsa()); }

enum class Instruction : unsigned char { kFma, kDotBFloat16, kDotInt8 };

// Returns multiplies and adds per second, each counted as one operation, with 512-bit registers if `isa` has them. The
// dot products need Isa::kAvx512Bf16; for other instruction sets their rate is 0.
double PeakRate(kernels::Isa isa, Instruction instruction);

// Reads `count` words and discards them.
void ReadWords(const uint64_t* words, int64_t count);

// Returns the read bandwidth in bytes per second, for a buffer larger than the caches, over at least `min_seconds`. On
// shared machines a shorter measurement may give twice the sustained bandwidth.
double ReadBandwidth(double min_seconds);

}  // namespace vllm
