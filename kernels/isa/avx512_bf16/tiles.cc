// Tile kernels compiled for AVX-512 with VNNI and BF16 (flags: kernels/CMakeLists.txt). Do not call inline functions
// that other files also call, unless they are always_inline: the linker keeps one copy of each, and this file's copy
// would not run on every CPU.
#include "kernels/isa/avx512_bf16/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_bf16 {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_int8.inl"
#include "kernels/impl/tiles/pack_bfloat16.inl"
#include "kernels/impl/tiles/linear_bfloat16.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::avx512_bf16

namespace vllm::kernels {

constinit const TileKernels kAvx512Bf16TileKernels = {
    avx512_bf16::PackBFloat16<avx512_bf16::Interleaved>, avx512_bf16::LinearBFloat16,
    avx512_bf16::PackInt8<avx512_bf16::Interleaved>, avx512_bf16::LinearQuant};

}  // namespace vllm::kernels
