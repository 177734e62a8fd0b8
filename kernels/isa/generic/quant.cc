// Kernels on checkpoint formats compiled for any CPU. Do not call inline functions that other files also call, unless
// they are always_inline: the linker keeps one copy of each, possibly one that was compiled for another instruction
// set.
#include "kernels/isa/generic/codes.h"
#include "kernels/kernel_tables.h"
#include "kernels/matrix/block_grids.h"

namespace vllm::kernels::generic {

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

}  // namespace vllm::kernels::generic

namespace vllm::kernels {

constinit const QuantKernels kGenericQuantKernels = {generic::QuantLinear, generic::Dequantize,
                                                     generic::QuantizeIQ4_NL};

}  // namespace vllm::kernels
