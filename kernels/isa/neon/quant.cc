// The kernels on stored weights compiled for AArch64's NEON. Nothing here may include code that other files share
// inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa/neon/codes.h"
#include "kernels/kernel_tables.h"

namespace vllm::neon {

#include "kernels/impl/unroll.inl"
// clang-format off: the rest builds on unroll.inl
#include "kernels/impl/quant_blocks.inl"
#include "kernels/impl/quant_groups.inl"
#include "kernels/impl/quant_k_blocks.inl"
#include "kernels/impl/quant_linear.inl"
#include "kernels/impl/quant_store.inl"
// clang-format on

}  // namespace vllm::neon

namespace vllm {

constinit const QuantKernels kNeonQuantKernels = {neon::QuantLinear, neon::Dequantize, neon::QuantizeIQ4_NL};

}  // namespace vllm
