// Tile kernels compiled for AArch64's NEON with sdot and smmla (flags: kernels/CMakeLists.txt). Do not call inline
// functions that other files also call, unless they are always_inline: the linker keeps one copy of each, and this
// file's copy would not run on every CPU.
#include "kernels/isa/neon_i8mm/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::neon_i8mm {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_int8.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::neon_i8mm

namespace vllm::kernels {

constinit const TileKernels kNeonI8mmTileKernels = {nullptr, nullptr, neon_i8mm::PackInt8<neon_i8mm::Interleaved>,
                                                    neon_i8mm::LinearQuant};

}  // namespace vllm::kernels
