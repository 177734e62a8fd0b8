// UnitLoads: how linear_quant loads the units of x in tiles of one panel. Which way is faster depends on the CPU, and a
// short measurement finds out. Both give the same results. Any thread may call these functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace vllm::kernels {

// kSingle: each dot product loads a unit. kQuad: in tiles of eight and more rows, a single load serves four rows, and
// each of them then needs a shuffle. That is faster if loads limit the dot products, and slower if shuffles do.
enum class UnitLoads : uint8_t { kSingle, kQuad };
// Returns "single_loads" or "quad_loads".
std::string_view ToString(UnitLoads loads);
std::optional<UnitLoads> ParseUnitLoads(std::string_view name);

// Whether linear_quant of `isa` is compiled for kQuad too.
bool HasQuadLoads(Isa isa);
// Multiplies weights that stay in the cache in both ways, which takes about 1 ms. Returns kSingle unless kQuad is at
// least 3 % faster. REQUIRES: HasQuadLoads(isa), and the CPU supports isa.
UnitLoads MeasureUnitLoads(Isa isa);
// REQUIRES: HasQuadLoads(isa) or loads is kSingle.
const Kernels& KernelsFor(Isa isa, UnitLoads loads);

// Names the model of this CPU, by its maker and signature: "AuthenticAMD-00a10f11". Empty if it is unknown. Contains
// only letters, digits and '-'.
std::string CpuModel();

}  // namespace vllm::kernels
