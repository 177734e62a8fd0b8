// Attention compiled for AArch64's NEON. Nothing here may include code that other files share inline: the linker
// could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa/neon/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::neon {

// Each builds on those before.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/kv_elements.inl"
#include "kernels/impl/kv_bfloat16_widened.inl"
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::neon

namespace vllm {

constinit const AttentionKernels kNeonAttentionKernels = {neon::Attention, neon::AttentionPartial};

}  // namespace vllm
