// The kernels on stored weights compiled for any machine (see CMakeLists.txt for the flags). Nothing here may include
// code that other files share inline: the linker could keep the copy made for this instruction set and run it
// everywhere.
#include "kernels/isa/generic/codes.h"
#include "kernels/kernel_tables.h"

namespace vllm::generic {

#include "kernels/impl/unroll.inl"
// clang-format off: the rest builds on unroll.inl
#include "kernels/impl/quant_blocks.inl"
#include "kernels/impl/quant_groups.inl"
#include "kernels/impl/quant_k_blocks.inl"
#include "kernels/impl/quant_linear.inl"
#include "kernels/impl/quant_store.inl"
// clang-format on

}  // namespace vllm::generic

namespace vllm {

constinit const QuantKernels kGenericQuantKernels = {generic::QuantLinear, generic::Dequantize,
                                                     generic::QuantizeIQ4_NL};

}  // namespace vllm
