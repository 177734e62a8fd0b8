// The tile kernels compiled for AVX2 with FMA and F16C (see CMakeLists.txt for the flags). Nothing here may include
// code that other files share inline: the linker could keep the copy made for this instruction set and run it
// everywhere.
#include "kernels/isa/avx2/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::avx2 {

// Each builds on those before.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_tiles.inl"
#include "kernels/impl/linear_quant.inl"
// clang-format on

}  // namespace vllm::avx2

namespace vllm {

constinit const TileKernels kAvx2TileKernels = {nullptr, nullptr, avx2::PackInt8, avx2::LinearQuant};

}  // namespace vllm
