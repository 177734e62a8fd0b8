// FlushDenormals: until its end, floating-point instructions of this thread read denormal numbers as zeros and return
// zeros instead of them. vdpbf16ps always does. The rest of a kernel does so too, so that its results are the same if
// FMAs replace vdpbf16ps.
#pragma once

#include <immintrin.h>

namespace vllm::kernels::avx512_bf16 {

class FlushDenormals {
 public:
  [[gnu::always_inline]] FlushDenormals() : before_(_mm_getcsr()) { Set(before_ | kFlushToZero | kDenormalsAreZeros); }
  [[gnu::always_inline]] ~FlushDenormals() { Set(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZeros = 1u << 6;

  // The compiler does not know that arithmetic depends on the control register, but it does not move loads and stores
  // across this.
  [[gnu::always_inline]] static void Set(unsigned control) { asm volatile("ldmxcsr %0" : : "m"(control) : "memory"); }

  const unsigned before_;
};

}  // namespace vllm::kernels::avx512_bf16
