#include "kernels/isa/kernels_for.h"

#include "kernels/kernel_tables.h"

namespace vllm::kernels {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)
// For an instruction set that only adds dot products: `base` with other tile kernels.
Kernels WithTiles(const Kernels& base, const TileKernels& tiles) {
  Kernels table = base;
  table.tiles = &tiles;
  return table;
}
#endif

#if defined(__x86_64__)
const Kernels& Avx2VnniKernels() {
  static const Kernels kernels = WithTiles(kAvx2Kernels, kAvx2VnniTileKernels);
  return kernels;
}

const Kernels& Avx512VnniKernels() {
  static const Kernels kernels = WithTiles(kAvx512Kernels, kAvx512VnniTileKernels);
  return kernels;
}

// Attention multiplies bfloat16 pairs too.
const Kernels& Avx512Bf16Kernels() {
  static const Kernels kernels = [] {
    Kernels table = WithTiles(kAvx512Kernels, kAvx512Bf16TileKernels);
    table.attention = &kAvx512Bf16AttentionKernels;
    return table;
  }();
  return kernels;
}

const Kernels& Avx512AmxKernels() {
  static const Kernels kernels = [] {
    Kernels table = WithTiles(kAvx512Kernels, kAvx512AmxTileKernels);
    table.attention = &kAvx512AmxAttentionKernels;
    return table;
  }();
  return kernels;
}
#endif

#if defined(__aarch64__)
const Kernels& NeonDotprodKernels() {
  static const Kernels kernels = WithTiles(kNeonKernels, kNeonDotprodTileKernels);
  return kernels;
}

const Kernels& NeonI8mmKernels() {
  static const Kernels kernels = WithTiles(kNeonKernels, kNeonI8mmTileKernels);
  return kernels;
}

const Kernels& NeonBf16Kernels() {
  static const TileKernels tiles = [] {
    TileKernels table = kNeonBf16TileKernels;
    table.pack_int8 = kNeonI8mmTileKernels.pack_int8;
    table.linear_quant = kNeonI8mmTileKernels.linear_quant;
    return table;
  }();
  static const Kernels kernels = WithTiles(kNeonKernels, tiles);
  return kernels;
}
#endif

}  // namespace

const Kernels& KernelsFor(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2:
      return kAvx2Kernels;
    case Isa::kAvx2Vnni:
      return Avx2VnniKernels();
    case Isa::kAvx512:
      return kAvx512Kernels;
    case Isa::kAvx512Vnni:
      return Avx512VnniKernels();
    case Isa::kAvx512Bf16:
      return Avx512Bf16Kernels();
    case Isa::kAvx512Amx:
      return Avx512AmxKernels();
#endif
#if defined(__aarch64__)
    case Isa::kNeon:
      return kNeonKernels;
    case Isa::kNeonDotprod:
      return NeonDotprodKernels();
    case Isa::kNeonI8mm:
      return NeonI8mmKernels();
    case Isa::kNeonBf16:
      return NeonBf16Kernels();
#endif
    default:
      return kGenericKernels;
  }
}

}  // namespace vllm::kernels
