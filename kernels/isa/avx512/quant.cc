// The kernels on stored weights compiled for AVX-512 F, BW, DQ and VL (see CMakeLists.txt for the flags). Nothing here
// may include code that other files share inline: the linker could keep the copy made for this instruction set and run
// it everywhere.
#include "kernels/isa/avx512/codes.h"
#include "kernels/kernel_tables.h"

namespace vllm::avx512 {

#include "kernels/impl/unroll.inl"
// clang-format off: the rest builds on unroll.inl
#include "kernels/impl/quant_blocks.inl"
#include "kernels/impl/quant_groups.inl"
#include "kernels/impl/quant_k_blocks.inl"
#include "kernels/impl/quant_linear.inl"
#include "kernels/impl/quant_store.inl"
// clang-format on

}  // namespace vllm::avx512

namespace vllm {

constinit const QuantKernels kAvx512QuantKernels = {avx512::QuantLinear, avx512::Dequantize, avx512::QuantizeIQ4_NL};

}  // namespace vllm
