#include "bench/machine_limits.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "kernels/isa.h"
#include "kernels/isa/avx512_amx/tile_registers.h"
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
// A chain of dependent instructions is one instruction per latency. Zen 5 has the largest product of latency and rate:
// vdpbf16ps takes 6 cycles, and two start in each.
constexpr int kChains = 16, kChains256 = 8;
constexpr int64_t kRepeats = 2'000'000, kTileRepeats = 500'000;

// Random floats between -2 and 2. Each half of their bits is also a bfloat16 between -2 and 2, and their bytes are
// codes. Zeros would draw less power, so the clock might be higher than that of a real kernel.
alignas(64) const std::array<uint32_t, 32> kOperands = [] {
  std::array<uint32_t, 32> words;
  uint32_t random = 1;
  for (uint32_t& word : words) {
    random = random * 1664525u + 1013904223u;
    // Clearing a bit of each exponent keeps the values below 2, and setting another one keeps them above 2^-64.
    word = (random & 0xbfffbfffu) | 0x20002000u;
  }
  return words;
}();

// The accumulators are separate variables, because the compiler would keep an array in memory. One statement cannot
// have all of them.
#define VLLM_EIGHT(name, a, b, c, d, e, f, g, h, x, y)                                                  \
  asm volatile(name " %8, %9, %0\n" name " %8, %9, %1\n" name " %8, %9, %2\n" name " %8, %9, %3\n" name \
                    " %8, %9, %4\n" name " %8, %9, %5\n" name " %8, %9, %6\n" name " %8, %9, %7\n"      \
               : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "+v"(e), "+v"(f), "+v"(g), "+v"(h)                 \
               : "v"(x), "v"(y))
#define VLLM_REPEAT_512(name)                                                   \
  const __m512i x = _mm512_load_si512(kOperands.data());                        \
  const __m512i y = _mm512_load_si512(kOperands.data() + 16);                   \
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a, e = a, f = a, g = a; \
  __m512i h = a, i = a, j = a, k = a, l = a, m = a, n = a, o = a, p = a;        \
  for (int64_t repeat = 0; repeat < kRepeats; ++repeat) {                       \
    VLLM_EIGHT(name, a, b, c, d, e, f, g, h, x, y);                             \
    VLLM_EIGHT(name, i, j, k, l, m, n, o, p, x, y);                             \
  }

__attribute__((target("avx512f"))) void RunFma512() { VLLM_REPEAT_512("vfmadd231ps") }
__attribute__((target("avx512f"))) void RunDotBFloat16() { VLLM_REPEAT_512("vdpbf16ps") }
__attribute__((target("avx512f"))) void RunDotInt8() { VLLM_REPEAT_512("vpdpbusd") }
// Two tiles of x times two of w, all with 16 rows of 64 bytes, which keeps the multiplier busy.
#define VLLM_REPEAT_TILES(name)                                                                                    \
  kernels::avx512_amx::TileConfig config;                                                                          \
  for (int tile = 0; tile < 8; ++tile) {                                                                           \
    config.rows[tile] = 16;                                                                                        \
    config.row_bytes[tile] = 64;                                                                                   \
  }                                                                                                                \
  kernels::avx512_amx::TileRegisters::Configure(config);                                                           \
  asm volatile("tileloadd (%0), %%tmm4\n tileloadd (%0), %%tmm5\n tileloadd (%0), %%tmm6\n tileloadd (%0), %%tmm7" \
               :                                                                                                   \
               : "r"(kOperands.data())                                                                             \
               : "memory");                                                                                        \
  for (int64_t repeat = 0; repeat < kTileRepeats; ++repeat) {                                                      \
    asm volatile(name " %tmm6, %tmm4, %tmm0\n" name " %tmm7, %tmm4, %tmm1\n" name " %tmm6, %tmm5, %tmm2\n" name    \
                      " %tmm7, %tmm5, %tmm3");                                                                     \
  }                                                                                                                \
  kernels::avx512_amx::TileRegisters::Release();

void RunTilesBFloat16() { VLLM_REPEAT_TILES("tdpbf16ps") }
void RunTilesInt8() { VLLM_REPEAT_TILES("tdpbssd") }
__attribute__((target("avx2,fma"))) void RunFma256() {
  const __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(kOperands.data()));
  const __m256i y = _mm256_load_si256(reinterpret_cast<const __m256i*>(kOperands.data() + 16));
  __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  for (int64_t repeat = 0; repeat < kRepeats; ++repeat) VLLM_EIGHT("vfmadd231ps", a, b, c, d, e, f, g, h, x, y);
}
#undef VLLM_REPEAT_512
#undef VLLM_REPEAT_TILES
#undef VLLM_EIGHT
#endif

}  // namespace

double PeakRate(kernels::Isa isa, Instruction instruction) {
#if defined(__x86_64__)
  constexpr double kInstructions = static_cast<double>(kRepeats) * kChains;
  constexpr double kInstructions256 = static_cast<double>(kRepeats) * kChains256;
  constexpr double kTileInstructions = static_cast<double>(kTileRepeats) * 4;
  const bool has_tiles = isa == kernels::Isa::kAvx512Amx, has_bfloat16 = isa == kernels::Isa::kAvx512Bf16 || has_tiles;
  const bool has_vnni = isa == kernels::Isa::kAvx512Vnni || has_bfloat16;
  if (instruction == Instruction::kFma) {
    if (isa == kernels::Isa::kAvx2 || isa == kernels::Isa::kAvx2Vnni) return Best(kInstructions256 * 16, RunFma256);
    if (isa == kernels::Isa::kAvx512 || has_vnni) return Best(kInstructions * 32, RunFma512);
    return 0.0;
  }
  if (instruction == Instruction::kTileInt8) return has_tiles ? Best(kTileInstructions * 32768, RunTilesInt8) : 0.0;
  if (instruction == Instruction::kTileBFloat16) {
    return has_tiles ? Best(kTileInstructions * 16384, RunTilesBFloat16) : 0.0;
  }
  if (instruction == Instruction::kDotInt8) return has_vnni ? Best(kInstructions * 128, RunDotInt8) : 0.0;
  return has_bfloat16 ? Best(kInstructions * 64, RunDotBFloat16) : 0.0;
#else
  (void)isa;
  (void)instruction;
  return 0.0;
#endif
}

Instruction BFloat16Instruction(kernels::Isa isa) {
  if (isa == kernels::Isa::kAvx512Amx) return Instruction::kTileBFloat16;
  static const bool fma_is_faster = PeakRate(isa, Instruction::kFma) > PeakRate(isa, Instruction::kDotBFloat16);
  return isa == kernels::Isa::kAvx512Bf16 && fma_is_faster ? Instruction::kFma : Instruction::kDotBFloat16;
}

double ClockRate() {
#if defined(__x86_64__)
  // A 64-bit multiplication takes 3 cycles on AMD's CPUs since Zen and Intel's since Nehalem. Newer CPUs complete some
  // chains of additions in less than a cycle each.
  constexpr double kCycles = 3.0 * 4 * static_cast<double>(kRepeats);
  return Best(kCycles, [] {
    uint64_t x = 3;
    for (int64_t i = 0; i < kRepeats; ++i) {
      asm volatile("imul %0, %0\nimul %0, %0\nimul %0, %0\nimul %0, %0\n" : "+r"(x));
    }
  });
#else
  return 0.0;
#endif
}

#if defined(__x86_64__)
// On Emerald Rapids, 512-bit loads read 1.3 to 1.5 times as fast as 128-bit loads.
__attribute__((target("avx512f"))) static void ReadWords512(const uint64_t* words, int64_t count) {
  __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
  for (int64_t i = 0; i + 32 <= count; i += 32) {
    a = _mm512_add_epi64(a, _mm512_loadu_si512(words + i));
    b = _mm512_add_epi64(b, _mm512_loadu_si512(words + i + 8));
    c = _mm512_add_epi64(c, _mm512_loadu_si512(words + i + 16));
    d = _mm512_add_epi64(d, _mm512_loadu_si512(words + i + 24));
  }
  asm volatile("" : : "v"(a), "v"(b), "v"(c), "v"(d));
}
#endif

void ReadWords(const uint64_t* words, int64_t count) {
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  if (has_avx512) return ReadWords512(words, count);
#endif
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
