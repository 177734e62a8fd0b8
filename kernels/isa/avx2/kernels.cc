// Elementwise and float kernels compiled for AVX2 with FMA and F16C (flags: kernels/CMakeLists.txt). Do not call inline
// functions that other files also call, unless they are always_inline: the linker keeps one copy of each, and this
// file's copy would not run on every CPU.
#include "kernels/isa/avx2/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx2 {

#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
// clang-format off: the rest uses math.inl
#include "kernels/impl/activation.inl"
#include "kernels/impl/elementwise.inl"
#include "kernels/impl/linear.inl"
#include "kernels/impl/recurrent.inl"
// clang-format on

}  // namespace vllm::kernels::avx2

namespace vllm::kernels {

constinit const RecurrentKernels kAvx2RecurrentKernels = {
    .causal_conv = avx2::CausalConv,
    .linear_recurrence = avx2::LinearRecurrence,
};

constinit const Kernels kAvx2Kernels = {
    .linear = avx2::Linear,
    .rms_norm = avx2::RmsNorm,
    .layer_norm = avx2::LayerNorm,
    .sum_of_squares = avx2::SumOfSquares,
    .mul_scaled = avx2::MulScaled,
    .activation = avx2::ActivationRow,
    .clamped_swiglu = avx2::ClampedSwiglu,
    .add = avx2::Add,
    .add_scaled = avx2::AddScaled,
    .scale = avx2::Scale,
    .soft_cap = avx2::SoftCapRow,
    .rotary = avx2::Rotary,
    .rotary_neighbors = avx2::RotaryNeighbors,
    .exp = avx2::ExpRow,
    .attention = &kAvx2AttentionKernels,
    .quant = &kAvx2QuantKernels,
    .tiles = &kAvx2TileKernels,
    .recurrent = &kAvx2RecurrentKernels,
    .rows = &kAvx2RowKernels,
};

}  // namespace vllm::kernels
