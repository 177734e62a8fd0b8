// Isa: the instruction sets that kernels are compiled for, and which of them this machine runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace vllm {

enum class Isa : uint8_t { kGeneric, kAvx2, kAvx512 };

// Ascending; kGeneric is always there.
std::vector<Isa> AvailableIsas();
Isa BestIsa();

std::string_view ToString(Isa isa);  // "generic", "avx2", "avx512"
std::optional<Isa> ParseIsa(std::string_view name);

}  // namespace vllm
