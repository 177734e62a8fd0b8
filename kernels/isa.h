// Isa: the instruction sets that kernels are compiled for, and which of them this machine runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace vllm {

// kAvx512Bf16 has VNNI too.
enum class Isa : uint8_t { kGeneric, kAvx2, kAvx512, kAvx512Bf16 };

// Ascending; kGeneric is always there.
std::vector<Isa> AvailableIsas();
// The last of them, or the one that $VLLMCLI_ISA names if it is among them: so every test can run on each.
Isa BestIsa();

std::string_view ToString(Isa isa);  // "generic", "avx2", "avx512", "avx512_bf16"
std::optional<Isa> ParseIsa(std::string_view name);

}  // namespace vllm
