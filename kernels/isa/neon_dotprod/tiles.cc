// Tile kernels compiled for AArch64's NEON with sdot (flags: kernels/CMakeLists.txt). Do not call inline functions that
// other files also call, unless they are always_inline: the linker keeps one copy of each, and this file's copy would
// not run on every CPU.
#include "kernels/isa/neon_dotprod/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::neon_dotprod {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_int8.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::neon_dotprod

namespace vllm::kernels {

constinit const TileKernels kNeonDotprodTileKernels = {
    nullptr, nullptr, neon_dotprod::PackInt8<neon_dotprod::Interleaved>, neon_dotprod::LinearQuant};

}  // namespace vllm::kernels
