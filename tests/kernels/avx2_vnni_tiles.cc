// The AVX-VNNI tile kernels under other names, compiled with AVX-512's encoding of the instructions (flags:
// tests/CMakeLists.txt), so that the tests can run them on CPUs that have only this encoding.
#if defined(__AVX512VNNI__)

#include <immintrin.h>

#define avx2 evex_avx2
#define avx2_vnni evex_avx2_vnni
#define kAvx2VnniTileKernels kEvexAvx2VnniTileKernels

#include "kernels/isa/avx2_vnni/tiles.cc"

#endif
