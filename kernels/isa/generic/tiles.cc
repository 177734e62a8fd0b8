// Tile kernels compiled for any CPU. Do not call inline functions that other files also call, unless they are
// always_inline: the linker keeps one copy of each, possibly one that was compiled for another instruction set.
#include "kernels/isa/generic/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::generic {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_int8.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::generic

namespace vllm::kernels {

constinit const TileKernels kGenericTileKernels = {nullptr, nullptr, generic::PackInt8<generic::Interleaved>,
                                                   generic::LinearQuant};

}  // namespace vllm::kernels
