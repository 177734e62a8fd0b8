// The attention kernels that the tests run, with their names.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/tuning/kernel_variants.h"

namespace vllm::kernels {

#if defined(__x86_64__)
extern const AttentionKernels kEmulatedAmxAttentionKernels;  // runs on CPUs with avx512_bf16
#endif

struct NamedAttention {
  std::string name;
  const AttentionKernels* kernels;

  // Softmax weights, and queries except with latent attention, are rounded to bfloat16 if K and V are bfloat16.
  bool RoundsToBFloat16() const { return name.starts_with("avx512_bf16") || name.starts_with("avx512_amx"); }
};
inline void PrintTo(const NamedAttention& attention, std::ostream* out) { *out << attention.name; }

// Returns the kernels of every instruction set that this CPU supports, and with avx512_bf16 those with FMAs and those
// for AMX with emulated registers.
inline std::vector<NamedAttention> AllAttentionKernels() {
  std::vector<NamedAttention> all;
  for (const Isa isa : AvailableIsas()) all.push_back({std::string(ToString(isa)), KernelsFor(isa).attention});
#if defined(__x86_64__)
  if (all.back().RoundsToBFloat16()) {
    const KernelVariants fmas{.pairs = PairProducts::kFmas};
    if (std::ranges::count(VariantsOf(Isa::kAvx512Bf16), fmas) > 0) {
      all.push_back({"avx512_bf16_fmas", KernelsFor(Isa::kAvx512Bf16, fmas).attention});
    }
    all.push_back({"avx512_amx_emulated", &kEmulatedAmxAttentionKernels});
  }
#endif
  return all;
}

}  // namespace vllm::kernels
