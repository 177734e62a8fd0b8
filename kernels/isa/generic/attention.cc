// Attention kernels compiled for any CPU. Do not call inline functions that other files also call, unless they are
// always_inline: the linker keeps one copy of each, possibly one that was compiled for another instruction set.
#include "kernels/isa/generic/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::generic {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/attention_work.inl"
#include "kernels/impl/kv_elements.inl"
using KVBFloat16 = KVBFloat16Widened;
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::kernels::generic

namespace vllm::kernels {

constinit const AttentionKernels kGenericAttentionKernels = {generic::Attention, generic::AttentionPartial};

}  // namespace vllm::kernels
