// Isa: the instruction sets that kernels are compiled for, and those that this CPU supports. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace vllm::kernels {

// kAvx2Vnni is AVX2 with AVX-VNNI, kAvx512Bf16 is AVX-512 with VNNI and BF16, kNeonDotprod is AArch64's NEON with
// sdot.
enum class Isa : uint8_t { kGeneric, kAvx2, kAvx2Vnni, kAvx512, kAvx512Bf16, kNeon, kNeonDotprod };

// Returns the instruction sets that this CPU supports, ascending. kGeneric is always included.
std::vector<Isa> AvailableIsas();
// Returns the last of AvailableIsas().
Isa BestIsa();

std::string_view ToString(Isa isa);  // "generic", "avx2", "avx2_vnni", "avx512", "avx512_bf16", "neon", "neon_dotprod"
std::optional<Isa> ParseIsa(std::string_view name);

}  // namespace vllm::kernels
