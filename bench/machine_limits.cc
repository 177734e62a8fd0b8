#include "bench/machine_limits.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/matrix/aligned_buffer.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vllm {

namespace {

double Seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Calls `run` five times. Each call does `work` operations. Returns the highest rate, in operations per second.
template <typename F>
double Best(double work, F&& run) {
  double best = 0.0;
  for (int i = 0; i < 5; ++i) {
    const double begin = Seconds();
    run();
    best = std::max(best, work / (Seconds() - begin));
  }
  return best;
}

#if defined(__x86_64__)
constexpr int kChains = 8;  // hides a latency of 8 cycles at one instruction per cycle, or of 4 cycles at two
constexpr int64_t kRepeats = 4'000'000;

// The accumulators are separate variables, because the compiler would keep an array in memory.
#define VLLM_REPEAT(type, zero, name)                                                                     \
  type a = zero, b = a, c = a, d = a, e = a, f = a, g = a, h = a;                                         \
  const type one = zero;                                                                                  \
  for (int64_t i = 0; i < kRepeats; ++i) {                                                                \
    asm volatile(name " %8, %8, %0\n" name " %8, %8, %1\n" name " %8, %8, %2\n" name " %8, %8, %3\n" name \
                      " %8, %8, %4\n" name " %8, %8, %5\n" name " %8, %8, %6\n" name " %8, %8, %7\n"      \
                 : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g), "+v"(h)                 \
                 : "v"(one));                                                                             \
  }

__attribute__((target("avx512f"))) void RunFma512() { VLLM_REPEAT(__m512, _mm512_setzero_ps(), "vfmadd231ps") }
__attribute__((target("avx512f"))) void RunDotBFloat16() { VLLM_REPEAT(__m512, _mm512_setzero_ps(), "vdpbf16ps") }
__attribute__((target("avx512f"))) void RunDotInt8() { VLLM_REPEAT(__m512i, _mm512_setzero_si512(), "vpdpbusd") }
__attribute__((target("avx2,fma"))) void RunFma256() { VLLM_REPEAT(__m256, _mm256_setzero_ps(), "vfmadd231ps") }
#undef VLLM_REPEAT
#endif

}  // namespace

double PeakRate(kernels::Isa isa, Instruction instruction) {
#if defined(__x86_64__)
  constexpr double kInstructions = static_cast<double>(kRepeats) * kChains;
  if (instruction == Instruction::kFma) {
    if (isa == kernels::Isa::kAvx2 || isa == kernels::Isa::kAvx2Vnni) return Best(kInstructions * 16, RunFma256);
    if (isa == kernels::Isa::kAvx512 || isa == kernels::Isa::kAvx512Bf16) return Best(kInstructions * 32, RunFma512);
    return 0.0;
  }
  if (isa != kernels::Isa::kAvx512Bf16) return 0.0;
  if (instruction == Instruction::kDotBFloat16) return Best(kInstructions * 64, RunDotBFloat16);
  return Best(kInstructions * 128, RunDotInt8);
#else
  (void)isa;
  (void)instruction;
  return 0.0;
#endif
}

void ReadWords(const uint64_t* words, int64_t count) {
  std::array<uint64_t, 32> sums{};
  constexpr auto kLanes = static_cast<int64_t>(sums.size());
  for (int64_t i = 0; i + kLanes <= count; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) sums[static_cast<size_t>(j)] += words[i + j];
  }
  asm volatile("" : : "r"(sums.data()) : "memory");
}

double ReadBandwidth(double min_seconds) {
  constexpr size_t kBytes = size_t{512} << 20;
  constexpr auto kCount = static_cast<int64_t>(kBytes / sizeof(uint64_t));
  const kernels::AlignedBuffer buffer(kBytes);
  auto* words = buffer.as<uint64_t>();
  for (int64_t i = 0; i < kCount; i += 512) words[i] = 1;
  const double begin = Seconds();
  double seconds = 0.0, bytes = 0.0;
  while (seconds < min_seconds) {
    ReadWords(words, kCount);
    bytes += static_cast<double>(kBytes);
    seconds = Seconds() - begin;
  }
  return bytes / seconds;
}

}  // namespace vllm
