// Elementwise and float kernels compiled for AArch64's NEON. Do not call inline functions that other files also call,
// unless they are always_inline: the linker keeps one copy of each, possibly one that was compiled for another
// instruction set.
#include "kernels/isa/neon/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::neon {

#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
// clang-format off: the rest uses math.inl
#include "kernels/impl/activation.inl"
#include "kernels/impl/elementwise.inl"
#include "kernels/impl/linear.inl"
#include "kernels/impl/recurrent.inl"
// clang-format on

}  // namespace vllm::kernels::neon

namespace vllm::kernels {

constinit const RecurrentKernels kNeonRecurrentKernels = {
    .causal_conv = neon::CausalConv,
    .linear_recurrence = neon::LinearRecurrence,
};

constinit const Kernels kNeonKernels = {
    .linear = neon::Linear,
    .rms_norm = neon::RmsNorm,
    .layer_norm = neon::LayerNorm,
    .sum_of_squares = neon::SumOfSquares,
    .mul_scaled = neon::MulScaled,
    .activation = neon::ActivationRow,
    .clamped_swiglu = neon::ClampedSwiglu,
    .add = neon::Add,
    .add_scaled = neon::AddScaled,
    .scale = neon::Scale,
    .soft_cap = neon::SoftCapRow,
    .rotary = neon::Rotary,
    .rotary_neighbors = neon::RotaryNeighbors,
    .exp = neon::ExpRow,
    .attention = &kNeonAttentionKernels,
    .quant = &kNeonQuantKernels,
    .tiles = &kNeonTileKernels,
    .recurrent = &kNeonRecurrentKernels,
    .rows = &kGenericRowKernels,
};

}  // namespace vllm::kernels
