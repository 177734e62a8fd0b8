// linear_quant compiled for AVX-512 with VNNI (flags: kernels/CMakeLists.txt), with fewer loads: tiles of eight and
// more rows load four of the rows of x at once. Do not call inline functions that other files also call, unless they
// are always_inline: the linker keeps one copy of each, and this file's copy would not run on every CPU.
#include "kernels/isa/avx512_vnni/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_vnni_quad_loads {

using avx512::Bytes;
using avx512::FourBitShape;
using avx512::kPrefetchOneRow;
using avx512::LargestMagnitude;
using avx512::NarrowScaleShape;
using avx512::StoreCodes;
using avx512::Vec;
using avx512_vnni::CodeLevels;
using avx512_vnni::Codes;
using avx512_vnni::FourBitCodes;
using avx512_vnni::SixBitCodes;
using avx512_vnni::SixBitShape;
using avx512_vnni::WideScaleShape;

struct IntSums : avx512_vnni::IntSums {
  // With fewer rows, a tile needs few loads, and the shuffles would cost more than they save.
  static constexpr int kMinRowsOfQuad = 8;
  // The units of four rows. Broadcasting one needs a shuffle instead of a load.
  struct Quad {
    __m512i v;
    [[gnu::always_inline]] static Quad Load(const uint32_t* units) {
      return {_mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(units)))};
    }
    template <int kRow>
    [[gnu::always_inline]] __m512i Broadcast() const {
      return _mm512_shuffle_epi32(v, static_cast<_MM_PERM_ENUM>(kRow * 0b01010101));
    }
  };
  static IntSums Start(int32_t offset) { return {avx512_vnni::IntSums::Start(offset)}; }
};
using FourBitSums = IntSums;
using SixBitSums = IntSums;

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/impl/tiles/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::avx512_vnni_quad_loads

namespace vllm::kernels {

constinit const LinearQuantFunction kAvx512VnniQuadLoadsLinearQuant = avx512_vnni_quad_loads::LinearQuant;

}  // namespace vllm::kernels
