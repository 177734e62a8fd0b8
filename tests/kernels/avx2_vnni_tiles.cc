// The AVX2 tiles with AVX-VNNI, compiled with the AVX-512 encoding and renamed (flags: tests/CMakeLists.txt). So CPUs
// that have only that encoding run their tests too.
#if defined(__AVX512VNNI__)

#include <immintrin.h>

#define avx2 evex_avx2
#define avx2_vnni evex_avx2_vnni
#define kAvx2VnniTileKernels kEvexAvx2VnniTileKernels

#include "kernels/isa/avx2_vnni/tiles.cc"

#endif
