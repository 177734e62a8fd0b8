// Attention kernels compiled for any CPU. Do not include inline functions that other files share: the linker keeps one
// copy of each, and every instruction set needs its own.
#include "kernels/isa/generic/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::generic {

// Each file uses those before it.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/kv_elements.inl"
using KVBFloat16 = KVBFloat16Widened;
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::kernels::generic

namespace vllm::kernels {

constinit const AttentionKernels kGenericAttentionKernels = {generic::Attention, generic::AttentionPartial};

}  // namespace vllm::kernels
