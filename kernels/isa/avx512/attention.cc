// Attention compiled for AVX-512 F, BW, DQ and VL (see CMakeLists.txt for the flags). Nothing here may include code
// that other files share inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa/avx512/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::avx512 {

// Each builds on those before.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/kv_elements.inl"
#include "kernels/impl/kv_bfloat16_widened.inl"
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::avx512

namespace vllm {

constinit const AttentionKernels kAvx512AttentionKernels = {avx512::Attention, avx512::AttentionPartial};

}  // namespace vllm
