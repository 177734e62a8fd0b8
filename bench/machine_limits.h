// The limits of this machine: the read bandwidth of memory, and the peak rate of the instructions that the kernels use.
// The functions measure on the calling thread, which may be any.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "kernels/isa.h"
#include "kernels/tuning/kernel_variants.h"
#include "tests/support/test_isa.h"

namespace vllm {

// Returns the instruction set to measure: $VLLMCLI_ISA if it is set and supported, else the best one of this CPU.
inline kernels::Isa BenchIsa() { return testing_support::IsaFromEnvironment().value_or(kernels::BestIsa()); }

// Returns the kernels of BenchIsa() with the KernelVariants that $VLLMCLI_BENCH_VARIANTS names, or if it is not set,
// with those that a measurement finds faster.
inline const kernels::Kernels& BenchKernels() {
  static const kernels::KernelVariants variants = [] {
    const kernels::Isa isa = BenchIsa();
    const char* text = std::getenv("VLLMCLI_BENCH_VARIANTS");
    if (const auto named = kernels::ParseVariantsOf(isa, text == nullptr ? "" : text)) return *named;
    return kernels::VariantsOf(isa).size() > 1 ? kernels::MeasureVariants(isa) : kernels::KernelVariants();
  }();
  return kernels::KernelsFor(BenchIsa(), variants);
}

// The last two are those of AMX.
enum class Instruction : unsigned char { kFma, kDotBFloat16, kDotInt8, kTileBFloat16, kTileInt8 };

// Returns multiplies and adds per second, each counted as one operation, with the widest registers of `isa`. Returns 0
// for dot products of 512 bits and tiles that `isa` does not have, and 0 for instruction sets other than AVX2 and
// AVX-512.
double PeakRate(kernels::Isa isa, Instruction instruction);

// The instruction that multiplies most bfloat16 or int8 values with `isa`. Measures for bfloat16.
Instruction BFloat16Instruction(kernels::Isa isa);
inline Instruction Int8Instruction(kernels::Isa isa) {
  return isa == kernels::Isa::kAvx512Amx ? Instruction::kTileInt8 : Instruction::kDotInt8;
}

// Returns the clock in cycles per second, or 0 if it is not known how to measure it.
double ClockRate();

// Reads `count` words, rounded down to a multiple of 32, and discards them.
void ReadWords(const uint64_t* words, int64_t count);

// Returns the read bandwidth in bytes per second for a buffer larger than the caches. Measures for at least
// `min_seconds`; on shared machines, a short measurement may give twice the sustained bandwidth.
double ReadBandwidth(double min_seconds);

}  // namespace vllm
