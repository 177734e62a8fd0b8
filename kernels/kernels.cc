#include "kernels/kernels.h"

#include "kernels/isa_tables.h"

namespace vllm {

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> isas = {Isa::kGeneric};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
    isas.push_back(Isa::kAvx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      isas.push_back(Isa::kAvx512);
    }
  }
#endif
  return isas;
}

Isa BestIsa() { return AvailableIsas().back(); }

std::string_view ToString(Isa isa) { return KernelsFor(isa).name; }

std::optional<Isa> ParseIsa(std::string_view name) {
  if (name == "generic") return Isa::kGeneric;
  if (name == "avx2") return Isa::kAvx2;
  if (name == "avx512") return Isa::kAvx512;
  return std::nullopt;
}

const Kernels& KernelsFor(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return kAvx2Kernels;
  if (isa == Isa::kAvx512) return kAvx512Kernels;
#endif
  (void)isa;
  return kGenericKernels;
}

}  // namespace vllm
