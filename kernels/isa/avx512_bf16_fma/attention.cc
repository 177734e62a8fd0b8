// Attention kernels compiled for AVX-512 with BF16 (flags: kernels/CMakeLists.txt), with FMAs. Do not call inline
// functions that other files also call, unless they are always_inline: the linker keeps one copy of each, and this
// file's copy would not run on every CPU.
#include "kernels/isa/avx512_bf16_fma/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_bf16_fma {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/attention_work.inl"
#include "kernels/impl/kv_elements.inl"
#include "kernels/impl/kv_bfloat16_dots.inl"
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::kernels::avx512_bf16_fma

namespace vllm::kernels {

constinit const AttentionKernels kAvx512Bf16FmaAttentionKernels = {avx512_bf16_fma::Attention,
                                                                   avx512_bf16_fma::AttentionPartial};

}  // namespace vllm::kernels
