// Elementwise and float kernels compiled for any CPU. Do not call inline functions that other files also call, unless
// they are always_inline: the linker keeps one copy of each, possibly one that was compiled for another instruction
// set.
#include "kernels/isa/generic/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::generic {

#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
// clang-format off: the rest uses math.inl
#include "kernels/impl/activation.inl"
#include "kernels/impl/elementwise.inl"
#include "kernels/impl/linear.inl"
#include "kernels/impl/recurrent.inl"
// clang-format on

}  // namespace vllm::kernels::generic

namespace vllm::kernels {

constinit const RecurrentKernels kGenericRecurrentKernels = {
    .causal_conv = generic::CausalConv,
    .linear_recurrence = generic::LinearRecurrence,
};

constinit const Kernels kGenericKernels = {
    .linear = generic::Linear,
    .rms_norm = generic::RmsNorm,
    .layer_norm = generic::LayerNorm,
    .sum_of_squares = generic::SumOfSquares,
    .mul_scaled = generic::MulScaled,
    .activation = generic::ActivationRow,
    .clamped_swiglu = generic::ClampedSwiglu,
    .add = generic::Add,
    .add_scaled = generic::AddScaled,
    .scale = generic::Scale,
    .soft_cap = generic::SoftCapRow,
    .rotary = generic::Rotary,
    .rotary_neighbors = generic::RotaryNeighbors,
    .exp = generic::ExpRow,
    .attention = &kGenericAttentionKernels,
    .quant = &kGenericQuantKernels,
    .tiles = &kGenericTileKernels,
    .recurrent = &kGenericRecurrentKernels,
    .rows = &kGenericRowKernels,
};

}  // namespace vllm::kernels
