// TileShape: the tiles of linear_quant for scales of 16 and 32 columns. Which shape is fastest depends on the CPU, and
// a short measurement finds out. Every shape gives the same results. Any thread may call these functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace vllm::kernels {

// 12 rows by one panel, which needs a load for each dot product, or 6 rows by two panels, which needs a load for every
// two but unpacks codes for fewer rows. kTwoPanels uses two panels only from kMinRowsOfTwoPanels rows on: with fewer,
// memory is the limit, and it delivers one panel faster than two at a time.
enum class TileShape : uint8_t { kOnePanel, kTwoPanels };
inline constexpr int64_t kMinRowsOfTwoPanels = 64;
// Returns "one_panel" or "two_panels".
std::string_view ToString(TileShape shape);
std::optional<TileShape> ParseTileShape(std::string_view name);

// Whether linear_quant of `isa` is compiled for kTwoPanels too.
bool HasTwoPanels(Isa isa);
// Multiplies weights that stay in the cache with both shapes, which takes about 4 ms. Returns kOnePanel unless
// kTwoPanels is at least 3 % faster. REQUIRES: HasTwoPanels(isa), and the CPU supports isa.
TileShape MeasureTileShape(Isa isa);
// REQUIRES: HasTwoPanels(isa) or shape is kOnePanel.
const Kernels& KernelsFor(Isa isa, TileShape shape);

// Names the model of this CPU, by its maker and signature: "AuthenticAMD-00a10f11". Empty if it is unknown. Contains
// only letters, digits and '-'.
std::string CpuModel();

}  // namespace vllm::kernels
