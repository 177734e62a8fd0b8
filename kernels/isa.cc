#include "kernels/isa.h"

#include <algorithm>
#include <iterator>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace vllm::kernels {

namespace {

// In the order of the enumerators of Isa.
constexpr std::string_view kIsaNames[] = {"generic",      "avx2",        "avx2_vnni",  "avx512",
                                          "avx512_vnni",  "avx512_bf16", "avx512_amx", "neon",
                                          "neon_dotprod", "neon_i8mm",   "neon_bf16"};

}  // namespace

#if defined(__x86_64__)
namespace {

// clang 14's __builtin_cpu_supports does not know F16C. The AVX2 check already covers OS support for the YMM
// registers.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

// REQUIRES: the CPU has AVX2.
bool HasAvxVnni() {
  constexpr unsigned kAvxVnni = 1u << 4;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAvxVnni) != 0;
}

// REQUIRES: the CPU has AVX-512.
bool HasAvx512Vnni() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & bit_AVX512VNNI) != 0;
}

// REQUIRES: the CPU has AVX-512.
bool HasAvx512Bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & bit_AVX512BF16) != 0;
}

// Also asks for permission to use AMX's tile data, which Linux grants to processes. REQUIRES: the CPU has AVX-512.
bool HasAmx() {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25, kAll = kBf16 | kTile | kInt8;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAll) != kAll) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

}  // namespace
#endif

std::vector<Isa> AvailableIsas() {
  std::vector<Isa> isas = {Isa::kGeneric};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HasF16c()) {
    isas.push_back(Isa::kAvx2);
    if (HasAvxVnni()) isas.push_back(Isa::kAvx2Vnni);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      isas.push_back(Isa::kAvx512);
      if (HasAvx512Vnni()) {
        isas.push_back(Isa::kAvx512Vnni);
        if (HasAvx512Bf16()) {
          isas.push_back(Isa::kAvx512Bf16);
          if (HasAmx()) isas.push_back(Isa::kAvx512Amx);
        }
      }
    }
  }
#endif
#if defined(__aarch64__)
  isas.push_back(Isa::kNeon);
  if ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0) {
    isas.push_back(Isa::kNeonDotprod);
    const unsigned long more = getauxval(AT_HWCAP2);
    if ((more & HWCAP2_I8MM) != 0) {
      isas.push_back(Isa::kNeonI8mm);
      if ((more & HWCAP2_BF16) != 0) isas.push_back(Isa::kNeonBf16);
    }
  }
#endif
  return isas;
}

Isa BestIsa() {
  static const Isa best = AvailableIsas().back();
  return best;
}

std::string_view ToString(Isa isa) { return kIsaNames[static_cast<size_t>(isa)]; }

std::optional<Isa> ParseIsa(std::string_view name) {
  const auto* it = std::find(std::begin(kIsaNames), std::end(kIsaNames), name);
  if (it == std::end(kIsaNames)) return std::nullopt;
  return static_cast<Isa>(it - std::begin(kIsaNames));
}

}  // namespace vllm::kernels
