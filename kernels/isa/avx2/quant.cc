// Kernels on checkpoint formats compiled for AVX2 with FMA and F16C (flags: kernels/CMakeLists.txt). Do not call inline
// functions that other files also call, unless they are always_inline: the linker keeps one copy of each, and this
// file's copy would not run on every CPU.
#include "kernels/isa/avx2/codes.h"
#include "kernels/kernel_tables.h"
#include "kernels/matrix/block_grids.h"

namespace vllm::kernels::avx2 {

#include "kernels/impl/unroll.inl"
// clang-format off: the rest uses unroll.inl
#include "kernels/impl/quant_blocks.inl"
#include "kernels/impl/quant_digit_blocks.inl"
#include "kernels/impl/quant_grid_blocks.inl"
#include "kernels/impl/quant_groups.inl"
#include "kernels/impl/quant_k_blocks.inl"
#include "kernels/impl/quant_linear.inl"
#include "kernels/impl/quant_store.inl"
// clang-format on

}  // namespace vllm::kernels::avx2

namespace vllm::kernels {

constinit const QuantKernels kAvx2QuantKernels = {avx2::QuantLinear, avx2::Dequantize, avx2::QuantizeIQ4_NL};

}  // namespace vllm::kernels
