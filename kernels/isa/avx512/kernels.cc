// Elementwise and float kernels compiled for AVX-512 F, BW, DQ and VL (flags: kernels/CMakeLists.txt). Do not call
// inline functions that other files also call, unless they are always_inline: the linker keeps one copy of each, and
// this file's copy would not run on every CPU.
#include "kernels/isa/avx512/vec.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512 {

#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
// clang-format off: the rest uses math.inl
#include "kernels/impl/activation.inl"
#include "kernels/impl/elementwise.inl"
#include "kernels/impl/linear.inl"
#include "kernels/impl/recurrent.inl"
// clang-format on

}  // namespace vllm::kernels::avx512

namespace vllm::kernels {

constinit const RecurrentKernels kAvx512RecurrentKernels = {
    .causal_conv = avx512::CausalConv,
    .linear_recurrence = avx512::LinearRecurrence,
};

constinit const Kernels kAvx512Kernels = {
    .linear = avx512::Linear,
    .rms_norm = avx512::RmsNorm,
    .layer_norm = avx512::LayerNorm,
    .sum_of_squares = avx512::SumOfSquares,
    .mul_scaled = avx512::MulScaled,
    .activation = avx512::ActivationRow,
    .clamped_swiglu = avx512::ClampedSwiglu,
    .add = avx512::Add,
    .add_scaled = avx512::AddScaled,
    .scale = avx512::Scale,
    .soft_cap = avx512::SoftCapRow,
    .rotary = avx512::Rotary,
    .rotary_neighbors = avx512::RotaryNeighbors,
    .exp = avx512::ExpRow,
    .attention = &kAvx512AttentionKernels,
    .quant = &kAvx512QuantKernels,
    .tiles = &kAvx512TileKernels,
    .recurrent = &kAvx512RecurrentKernels,
    .rows = &kAvx512RowKernels,
};

}  // namespace vllm::kernels
