// The tile kernels compiled for AVX-512 F, BW, DQ and VL (see CMakeLists.txt for the flags). Nothing here may include
// code that other files share inline: the linker could keep the copy made for this instruction set and run it
// everywhere.
#include "kernels/isa/avx512/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::avx512 {

// Each builds on those before.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_tiles.inl"
#include "kernels/impl/linear_quant.inl"
// clang-format on

}  // namespace vllm::avx512

namespace vllm {

constinit const TileKernels kAvx512TileKernels = {nullptr, nullptr, avx512::PackInt8, avx512::LinearQuant};

}  // namespace vllm
