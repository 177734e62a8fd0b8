// What this machine gives, measured now on the calling thread: the rate at which it reads memory and the peak rate of
// the instructions that the kernels are made of.
#pragma once

#include <cstdint>

#include "kernels/isa.h"
#include "tests/support/test_isa.h"

namespace vllm {

// The instruction set to measure: the one that $VLLMCLI_ISA names, else the machine's best.
inline Isa BenchIsa() { return testing_support::IsaFromEnvironment().value_or(BestIsa()); }

enum class Instruction : unsigned char { kFma, kDotBFloat16, kDotInt8 };

// Multiplies and adds a second, each counted as one; of 512-bit registers where `isa` has them. The dot products need
// Isa::kAvx512Bf16 and are 0 elsewhere.
double PeakRate(Isa isa, Instruction instruction);

// Reads so many words and does nothing else.
void ReadWords(const uint64_t* words, int64_t count);

// Bytes a second of a buffer larger than the caches, over at least so many seconds. Machines that are shared give some
// of them twice what lasts.
double ReadBandwidth(double at_least);

}  // namespace vllm
