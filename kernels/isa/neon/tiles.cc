// Tile kernels compiled for AArch64's NEON. Do not include inline functions that other files share: the linker keeps
// one copy of each, and every instruction set needs its own.
#include "kernels/isa/neon/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::neon {

// Each file uses those before it.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_tiles.inl"
#include "kernels/impl/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::neon

namespace vllm::kernels {

constinit const TileKernels kNeonTileKernels = {nullptr, nullptr, neon::PackInt8, neon::LinearQuant};

}  // namespace vllm::kernels
