// Attention compiled for AVX2, FMA and F16C (see CMakeLists.txt for the flags). Nothing here may include code that
// other files share inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa/avx2/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::avx2 {

// Each builds on those before.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/kv_elements.inl"
#include "kernels/impl/kv_bfloat16_widened.inl"
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::avx2

namespace vllm {

constinit const AttentionKernels kAvx2AttentionKernels = {avx2::Attention, avx2::AttentionPartial};

}  // namespace vllm
