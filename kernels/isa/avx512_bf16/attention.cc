// Attention kernels compiled for AVX-512 with VNNI and BF16 (flags: kernels/CMakeLists.txt). Do not call inline
// functions that other files also call, unless they are always_inline: the linker keeps one copy of each, and this
// file's copy would not run on every CPU.
#include "kernels/isa/avx512_bf16/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_bf16 {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/attention_work.inl"
#include "kernels/impl/kv_elements.inl"
#include "kernels/impl/kv_bfloat16_dots.inl"
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::kernels::avx512_bf16

namespace vllm::kernels {

constinit const AttentionKernels kAvx512Bf16AttentionKernels = {avx512_bf16::Attention, avx512_bf16::AttentionPartial};

}  // namespace vllm::kernels
