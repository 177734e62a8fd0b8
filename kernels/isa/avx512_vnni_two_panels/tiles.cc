// linear_quant compiled for AVX-512 with VNNI (flags: kernels/CMakeLists.txt) with tiles of 6 rows and two panels for
// scales of 16 and 32 columns. Do not call inline functions that other files also call, unless they are always_inline:
// the linker keeps one copy of each, and this file's copy would not run on every CPU.
#include "kernels/isa/avx512_vnni/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_vnni_two_panels {

using avx512::Bytes;
using avx512::LargestMagnitude;
using avx512::StoreCodes;
using avx512::Vec;
using avx512_vnni::CodeLevels;
using avx512_vnni::Codes;
using avx512_vnni::FourBitCodes;
using avx512_vnni::FourBitSums;
using avx512_vnni::IntSums;
using avx512_vnni::SixBitCodes;
using avx512_vnni::SixBitSums;
using avx512_vnni::WideScaleShape;

// One panel needs a load for each dot product, two need a load for every two.
struct NarrowScaleShape {
  static constexpr int kRows = 6, kPanels = 2;
  static constexpr int kFewRows = kRows, kPanelsFewRows = kPanels;
};
using FourBitShape = NarrowScaleShape;
using SixBitShape = NarrowScaleShape;

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::avx512_vnni_two_panels

namespace vllm::kernels {

constinit const LinearQuantFunction kAvx512VnniTwoPanelsLinearQuant = avx512_vnni_two_panels::LinearQuant;

}  // namespace vllm::kernels
