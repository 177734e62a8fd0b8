#include "kernels/kernels.h"

#include <algorithm>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/isa_tables.h"

namespace vllm {

#if defined(__x86_64__)
namespace {

// clang 14's __builtin_cpu_supports does not know this one. Whether the system keeps the registers is AVX2's question.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// Beside AVX-512.
bool HasVnniAndBf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (c & bit_AVX512VNNI) == 0) return false;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & bit_AVX512BF16) != 0;
}

}  // namespace
#endif

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> isas = {Isa::kGeneric};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c()) {
    isas.push_back(Isa::kAvx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      isas.push_back(Isa::kAvx512);
      if (HasVnniAndBf16()) isas.push_back(Isa::kAvx512Bf16);
    }
  }
#endif
  return isas;
}

Isa BestIsa() {
  static const Isa best = [] {
    const std::vector<Isa> available = AvailableIsas();
    const char* name = std::getenv("VLLMCLI_ISA");
    const std::optional<Isa> wanted = name == nullptr ? std::nullopt : ParseIsa(name);
    const bool runs = wanted && std::find(available.begin(), available.end(), *wanted) != available.end();
    return runs ? *wanted : available.back();
  }();
  return best;
}

std::string_view ToString(Isa isa) { return KernelsFor(isa).name; }

std::optional<Isa> ParseIsa(std::string_view name) {
  if (name == "generic") return Isa::kGeneric;
  if (name == "avx2") return Isa::kAvx2;
  if (name == "avx512") return Isa::kAvx512;
  if (name == "avx512_bf16") return Isa::kAvx512Bf16;
  return std::nullopt;
}

const Kernels& KernelsFor(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return kAvx2Kernels;
  if (isa == Isa::kAvx512) return kAvx512Kernels;
  if (isa == Isa::kAvx512Bf16) return kAvx512Bf16Kernels;
#endif
  (void)isa;
  return kGenericKernels;
}

}  // namespace vllm
