// Attention compiled for AVX-512 with BF16 (see CMakeLists.txt for the flags). Nothing here may include code
// that other files share inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa/avx512_bf16/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::avx512_bf16 {

// Each builds on those before.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/kv_elements.inl"
#include "kernels/impl/kv_bfloat16_dots.inl"
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::avx512_bf16

namespace vllm {

constinit const AttentionKernels kAvx512Bf16AttentionKernels = {avx512_bf16::Attention, avx512_bf16::AttentionPartial};

}  // namespace vllm
