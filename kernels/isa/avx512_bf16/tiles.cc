// The tile kernels compiled for AVX-512 with VNNI and BF16 (see CMakeLists.txt for the flags). Nothing here may include
// code that other files share inline: the linker could keep the copy made for this instruction set and run it
// everywhere.
#include "kernels/isa/avx512_bf16/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::avx512_bf16 {

// Each builds on those before.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_tiles.inl"
#include "kernels/impl/linear_bfloat16.inl"
#include "kernels/impl/linear_quant.inl"
// clang-format on

}  // namespace vllm::avx512_bf16

namespace vllm {

constinit const TileKernels kAvx512Bf16TileKernels = {avx512_bf16::PackBFloat16, avx512_bf16::LinearBFloat16,
                                                      avx512_bf16::PackInt8, avx512_bf16::LinearQuant};

}  // namespace vllm
