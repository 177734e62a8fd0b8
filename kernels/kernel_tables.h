// The kernel tables of all instruction sets. They are constants, defined in kernels/row_kernels.cc and in the
// directories of kernels/isa. Only code in kernels includes this header. Other code calls KernelsFor, on any thread.
#pragma once

#include "kernels/kernels.h"

namespace vllm::kernels {

extern const Kernels kGenericKernels;
extern const QuantKernels kGenericQuantKernels;
extern const AttentionKernels kGenericAttentionKernels;
extern const RecurrentKernels kGenericRecurrentKernels;
extern const TileKernels kGenericTileKernels;
extern const RowKernels kGenericRowKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const QuantKernels kAvx2QuantKernels;
extern const AttentionKernels kAvx2AttentionKernels;
extern const RecurrentKernels kAvx2RecurrentKernels;
extern const TileKernels kAvx2TileKernels;
extern const RowKernels kAvx2RowKernels;
extern const TileKernels kAvx2VnniTileKernels;
extern const Kernels kAvx512Kernels;
extern const QuantKernels kAvx512QuantKernels;
extern const AttentionKernels kAvx512AttentionKernels;
extern const RecurrentKernels kAvx512RecurrentKernels;
extern const TileKernels kAvx512TileKernels;
extern const RowKernels kAvx512RowKernels;
extern const TileKernels kAvx512VnniTileKernels;
extern const LinearQuantFunction kAvx512VnniQuadLoadsLinearQuant;
extern const LinearQuantFunction kAvx512VnniPrefetchLinearQuant;
extern const AttentionKernels kAvx512Bf16AttentionKernels;
extern const TileKernels kAvx512Bf16TileKernels;
extern const AttentionKernels kAvx512Bf16FmaAttentionKernels;
extern const TileKernels kAvx512Bf16FmaTileKernels;  // without kernels for int8
extern const AttentionKernels kAvx512AmxAttentionKernels;
extern const TileKernels kAvx512AmxTileKernels;
#endif
#if defined(__aarch64__)
extern const Kernels kNeonKernels;
extern const QuantKernels kNeonQuantKernels;
extern const AttentionKernels kNeonAttentionKernels;
extern const RecurrentKernels kNeonRecurrentKernels;
extern const TileKernels kNeonTileKernels;
extern const TileKernels kNeonDotprodTileKernels;
extern const TileKernels kNeonI8mmTileKernels;
extern const TileKernels kNeonBf16TileKernels;  // without kernels for int8
#endif

}  // namespace vllm::kernels
