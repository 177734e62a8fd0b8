// Attention compiled for any machine (see CMakeLists.txt for the flags). Nothing here may include code that other
// files share inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa/generic/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::generic {

// Each builds on those before.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/kv_elements.inl"
#include "kernels/impl/kv_bfloat16_widened.inl"
#include "kernels/impl/attention.inl"
// clang-format on

}  // namespace vllm::generic

namespace vllm {

constinit const AttentionKernels kGenericAttentionKernels = {generic::Attention, generic::AttentionPartial};

}  // namespace vllm
