// The tile kernels compiled for AArch64's NEON. Nothing here may include code that other files share inline: the linker
// could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa/neon/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::neon {

// Each builds on those before.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_tiles.inl"
#include "kernels/impl/linear_quant.inl"
// clang-format on

}  // namespace vllm::neon

namespace vllm {

constinit const TileKernels kNeonTileKernels = {nullptr, nullptr, neon::PackInt8, neon::LinearQuant};

}  // namespace vllm
