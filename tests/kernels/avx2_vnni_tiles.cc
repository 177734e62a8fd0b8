// The tiles of AVX2 with AVX-VNNI in the encoding of AVX-512 (see CMakeLists.txt for the flags), under names of their
// own: so a machine that has only that one runs their tests.
#if defined(__AVX512VNNI__)

#include <immintrin.h>

#define avx2 evex_avx2
#define avx2_vnni evex_avx2_vnni
#define kAvx2VnniTileKernels kEvexAvx2VnniTileKernels

#include "kernels/isa/avx2_vnni/tiles.cc"

#endif
