// The tile kernels compiled for AArch64's NEON with sdot (see CMakeLists.txt for the flags). Nothing here may include
// code that other files share inline: the linker could keep the copy made for this instruction set and run it
// everywhere.
#include "kernels/isa/neon_dotprod/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::neon_dotprod {

// Each builds on those before.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_tiles.inl"
#include "kernels/impl/linear_quant.inl"
// clang-format on

}  // namespace vllm::neon_dotprod

namespace vllm {

constinit const TileKernels kNeonDotprodTileKernels = {nullptr, nullptr, neon_dotprod::PackInt8,
                                                       neon_dotprod::LinearQuant};

}  // namespace vllm
