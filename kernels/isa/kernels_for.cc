#include "kernels/isa/kernels_for.h"

#include "kernels/kernel_tables.h"

namespace vllm::kernels {
namespace {

#if defined(__x86_64__)
// AVX-VNNI adds dot products of int8, so only the tile kernels differ from AVX2.
const Kernels& Avx2VnniKernels() {
  static const Kernels kernels = [] {
    Kernels table = kAvx2Kernels;
    table.tiles = &kAvx2VnniTileKernels;
    return table;
  }();
  return kernels;
}

// VNNI adds dot products of int8, so only the tile kernels differ from AVX-512.
const Kernels& Avx512VnniKernels() {
  static const Kernels kernels = [] {
    Kernels table = kAvx512Kernels;
    table.tiles = &kAvx512VnniTileKernels;
    return table;
  }();
  return kernels;
}

// VNNI and BF16 add dot products of int8 and bfloat16, so tile kernels and attention differ from AVX-512.
const Kernels& Avx512Bf16Kernels() {
  static const Kernels kernels = [] {
    Kernels table = kAvx512Kernels;
    table.attention = &kAvx512Bf16AttentionKernels;
    table.tiles = &kAvx512Bf16TileKernels;
    return table;
  }();
  return kernels;
}
#endif

#if defined(__aarch64__)
// sdot is a dot product of int8, so only the tile kernels differ from NEON.
const Kernels& NeonDotprodKernels() {
  static const Kernels kernels = [] {
    Kernels table = kNeonKernels;
    table.tiles = &kNeonDotprodTileKernels;
    return table;
  }();
  return kernels;
}

// smmla is a matrix product of int8, so only the tile kernels differ from NEON.
const Kernels& NeonI8mmKernels() {
  static const Kernels kernels = [] {
    Kernels table = kNeonKernels;
    table.tiles = &kNeonI8mmTileKernels;
    return table;
  }();
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
#endif
#if defined(__aarch64__)
    case Isa::kNeon:
      return kNeonKernels;
    case Isa::kNeonDotprod:
      return NeonDotprodKernels();
    case Isa::kNeonI8mm:
      return NeonI8mmKernels();
#endif
    default:
      return kGenericKernels;
  }
}

}  // namespace vllm::kernels
