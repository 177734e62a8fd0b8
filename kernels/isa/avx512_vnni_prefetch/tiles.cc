// linear_quant compiled for AVX-512 with VNNI (flags: kernels/CMakeLists.txt), with prefetches for a single row of x.
// Do not call inline functions that other files also call, unless they are always_inline: the linker keeps one copy of
// each, and this file's copy would not run on every CPU.
#include "kernels/isa/avx512_vnni/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_vnni_prefetch {

using avx512::Bytes;
using avx512::FourBitShape;
using avx512::LargestMagnitude;
using avx512::NarrowScaleShape;
using avx512::StoreCodes;
using avx512::Vec;
using avx512_vnni::CodeLevels;
using avx512_vnni::Codes;
using avx512_vnni::FourBitCodes;
using avx512_vnni::FourBitSums;
using avx512_vnni::IntSums;
using avx512_vnni::SixBitCodes;
using avx512_vnni::SixBitShape;
using avx512_vnni::SixBitSums;
using avx512_vnni::WideScaleShape;

inline constexpr bool kPrefetchOneRow = true;

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::avx512_vnni_prefetch

namespace vllm::kernels {

constinit const LinearQuantFunction kAvx512VnniPrefetchLinearQuant = avx512_vnni_prefetch::LinearQuant;

}  // namespace vllm::kernels
