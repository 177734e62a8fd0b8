// Tile kernels compiled for AArch64's NEON. Do not call inline functions that other files also call, unless they are
// always_inline: the linker keeps one copy of each, possibly one that was compiled for another instruction set.
#include "kernels/isa/neon/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::neon {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_int8.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::neon

namespace vllm::kernels {

constinit const TileKernels kNeonTileKernels = {nullptr, nullptr, neon::PackInt8<neon::Interleaved>, neon::LinearQuant};

}  // namespace vllm::kernels
