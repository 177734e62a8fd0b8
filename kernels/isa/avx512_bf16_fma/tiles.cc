// pack_bfloat16 and linear_bfloat16 compiled for AVX-512 with BF16 (flags: kernels/CMakeLists.txt), with FMAs. Do not
// call inline functions that other files also call, unless they are always_inline: the linker keeps one copy of each,
// and this file's copy would not run on every CPU.
#include "kernels/isa/avx512_bf16_fma/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_bf16_fma {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_bfloat16.inl"
#include "kernels/impl/tiles/linear_bfloat16.inl"
// clang-format on

}  // namespace vllm::kernels::avx512_bf16_fma

namespace vllm::kernels {

constinit const TileKernels kAvx512Bf16FmaTileKernels = {
    .pack_bfloat16 = avx512_bf16_fma::PackBFloat16<avx512_bf16_fma::Interleaved>,
    .linear_bfloat16 = avx512_bf16_fma::LinearBFloat16,
    .pack_int8 = nullptr,
    .linear_quant = nullptr,
    .bfloat16_columns_per_unit = 2 / avx512_bf16_fma::kUnitsPerPair};

}  // namespace vllm::kernels
