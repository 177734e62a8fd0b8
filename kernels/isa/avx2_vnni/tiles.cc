// Tile kernels compiled for AVX2 with AVX-VNNI (flags: kernels/CMakeLists.txt). Do not call inline functions that other
// files also call, unless they are always_inline: the linker keeps one copy of each, and this file's copy would not run
// on every CPU.
#include "kernels/isa/avx2_vnni/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx2_vnni {

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_int8.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::avx2_vnni

namespace vllm::kernels {

constinit const TileKernels kAvx2VnniTileKernels = {nullptr, nullptr, avx2_vnni::PackInt8<avx2_vnni::Interleaved>,
                                                    avx2_vnni::LinearQuant};

}  // namespace vllm::kernels
