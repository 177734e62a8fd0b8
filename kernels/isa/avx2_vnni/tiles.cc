// The tile kernels compiled for AVX2 with AVX-VNNI (see CMakeLists.txt for the flags). Nothing here may include
// code that other files share inline: the linker could keep the copy made for this instruction set and run it
// everywhere.
#include "kernels/isa/avx2_vnni/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::avx2_vnni {

// Each builds on those before.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_tiles.inl"
#include "kernels/impl/linear_quant.inl"
// clang-format on

}  // namespace vllm::avx2_vnni

namespace vllm {

constinit const TileKernels kAvx2VnniTileKernels = {nullptr, nullptr, avx2_vnni::PackInt8, avx2_vnni::LinearQuant};

}  // namespace vllm
