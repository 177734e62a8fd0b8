// Attention kernels compiled for AVX2 with FMA and F16C (flags: kernels/CMakeLists.txt). Do not call inline functions
// that other files also call, unless they are always_inline: the linker keeps one copy of each, and this file's copy
// would not run on every CPU.
#include "kernels/isa/avx2/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx2 {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/attention_work.inl"
#include "kernels/impl/kv_elements.inl"
using KVBFloat16 = KVBFloat16Widened;
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::kernels::avx2

namespace vllm::kernels {

constinit const AttentionKernels kAvx2AttentionKernels = {avx2::Attention, avx2::AttentionPartial};

}  // namespace vllm::kernels
