// The tile kernels compiled for any machine (see CMakeLists.txt for the flags). Nothing here may include code that
// other files share inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa/generic/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::generic {

// Each builds on those before.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_tiles.inl"
#include "kernels/impl/linear_quant.inl"
// clang-format on

}  // namespace vllm::generic

namespace vllm {

constinit const TileKernels kGenericTileKernels = {nullptr, nullptr, generic::PackInt8, generic::LinearQuant};

}  // namespace vllm
