// FastestKernels: kernels whose tiles have the shape that is fastest on this CPU, found by a short measurement. Every
// shape gives the same results. Thread-safe: the measurement uses only its own memory.
#pragma once

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace vllm::kernels {

enum class TileShape : uint8_t { kOnePanel, kTwoPanels };

// Whether linear_quant of `isa` is compiled for kTwoPanels too.
bool HasTwoPanels(Isa isa);
// Measures both shapes with a weight that stays in the cache; takes about 5 ms. Returns kOnePanel unless kTwoPanels is at
// least 3 % faster. REQUIRES: HasTwoPanels(isa), and the CPU supports isa.
TileShape MeasureTileShape(Isa isa);
// REQUIRES: HasTwoPanels(isa) or shape is kOnePanel.
const Kernels& KernelsFor(Isa isa, TileShape shape);

}  // namespace vllm::kernels
