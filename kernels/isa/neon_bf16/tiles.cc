// The tile kernels of bfloat16 compiled for AArch64's NEON with bfdot and bfmmla (flags: kernels/CMakeLists.txt). Do
// not call inline functions that other files also call, unless they are always_inline: the linker keeps one copy of
// each, and this file's copy would not run on every CPU.
#include <type_traits>

#include "kernels/isa/neon_bf16/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::neon_bf16 {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_bfloat16.inl"
#include "kernels/isa/neon_bf16/linear_bfloat16.inl"
// clang-format on

}  // namespace vllm::kernels::neon_bf16

namespace vllm::kernels {

constinit const TileKernels kNeonBf16TileKernels = {neon_bf16::PackBFloat16<neon_bf16::Interleaved>,
                                                    neon_bf16::LinearBFloat16, nullptr, nullptr};

}  // namespace vllm::kernels
