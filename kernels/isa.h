// Isa: an instruction set that kernels are compiled for. AvailableIsas and BestIsa report which ones this CPU supports.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace vllm::kernels {

// kAvx2 includes FMA and F16C, and kAvx2Vnni adds AVX-VNNI. kAvx512 is AVX-512 F, BW, DQ and VL, kAvx512Vnni adds
// VNNI, kAvx512Bf16 adds BF16 to that, and kAvx512Amx adds AMX with INT8 and BF16. kNeonDotprod is NEON with sdot,
// kNeonI8mm adds smmla, and kNeonBf16 adds bfdot and bfmmla to that.
enum class Isa : uint8_t {
  kGeneric,
  kAvx2,
  kAvx2Vnni,
  kAvx512,
  kAvx512Vnni,
  kAvx512Bf16,
  kAvx512Amx,
  kNeon,
  kNeonDotprod,
  kNeonI8mm,
  kNeonBf16
};

// Returns the instruction sets that this CPU supports, in the order of Isa. kGeneric is always included. The first call
// asks the operating system for AMX's registers, on behalf of the process.
std::vector<Isa> AvailableIsas();
// Returns the most capable of AvailableIsas().
Isa BestIsa();

// Returns the name for --isa: "generic", "avx512_vnni", "neon_i8mm" and so on.
std::string_view ToString(Isa isa);
std::optional<Isa> ParseIsa(std::string_view name);

}  // namespace vllm::kernels
