// Isa: the instruction sets that kernels are compiled for, and which of them this machine runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace vllm {

// kAvx2Vnni is AVX2 with AVX-VNNI, kAvx512Bf16 has VNNI too. kNeon is AArch64's, kNeonDotprod has sdot too.
enum class Isa : uint8_t { kGeneric, kAvx2, kAvx2Vnni, kAvx512, kAvx512Bf16, kNeon, kNeonDotprod };

// Those that this machine runs, ascending; kGeneric is always there.
std::vector<Isa> AvailableIsas();
// The last of them.
Isa BestIsa();

std::string_view ToString(Isa isa);  // "generic", "avx2", "avx2_vnni", "avx512", "avx512_bf16", "neon", "neon_dotprod"
std::optional<Isa> ParseIsa(std::string_view name);

}  // namespace vllm
