// AMX's eight tile registers. A tile has up to sixteen rows of up to 64 bytes. Each thread has its own registers: it
// calls Configure before any other function, and Release when it has finished.
#pragma once

#include <cstdint>

namespace vllm::kernels::avx512_amx {

// The operand of ldtilecfg.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Inline assembly, because g++ 12's intrinsics accept only literals as register numbers. The asm statements are
// volatile, so the compiler keeps their order.
struct TileRegisters {
  static void Configure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config) : "memory"); }
  static void Release() { asm volatile("tilerelease"); }
  template <int kTile>
  static void SetZero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  // `stride`: bytes from one row to the next.
  template <int kTile>
  static void Load(const void* p, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  // The same, with a hint that the lines are not needed again soon. They then replace few other lines of L1.
  template <int kTile>
  static void LoadOnce(const void* p, int64_t stride) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void Store(void* p, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  // sum[m][n] += x[m][4 k + i] * w[k][4 n + i] for all k and i < 4. x, w: int8, sum: int32
  template <int kSum, int kX, int kW>
  static void AddInt8Dots() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kX), "i"(kW));
  }
  // The same with unsigned w.
  template <int kSum, int kX, int kW>
  static void AddInt8UnsignedDots() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kX), "i"(kW));
  }
  // The first with pairs of bfloat16. Adds the products of first and of second columns in two float32 sums, each with a
  // fused multiply-add, then adds both to the tile. Subnormal numbers count as zero.
  template <int kSum, int kX, int kW>
  static void AddBFloat16Dots() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSum), "i"(kX), "i"(kW));
  }
};

}  // namespace vllm::kernels::avx512_amx
