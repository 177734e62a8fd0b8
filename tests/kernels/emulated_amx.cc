// The AMX kernels with emulated registers (flags: tests/CMakeLists.txt), so that the tests can run them on CPUs
// with AVX-512 that lack AMX.
#if defined(__AVX512BF16__)

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "kernels/isa/avx512_amx/tile_registers.h"
#include "kernels/isa/avx512_bf16/dots.h"
#include "kernels/kernel_tables.h"
#include "kernels/thread_scratch.h"

namespace vllm::kernels::emulated_amx {

using avx512_amx::TileConfig;

// Does what Intel's Software Developer's Manual says about each instruction, and aborts where the CPU would fault.
struct EmulatedRegisters {
  static constexpr int kNumTiles = 8, kMaxRows = 16, kMaxBytes = 64;
  struct Tile {
    unsigned char bytes[kMaxRows][kMaxBytes];
  };
  static inline thread_local TileConfig config;
  static inline thread_local Tile tiles[kNumTiles];

  static void Check(bool condition) {
    if (!condition) std::abort();
  }
  static void Configure(const TileConfig& to) {
    Check(to.palette == 1);
    for (int t = 0; t < kNumTiles; ++t) {
      Check((to.rows[t] == 0) == (to.row_bytes[t] == 0) && to.rows[t] <= kMaxRows && to.row_bytes[t] <= kMaxBytes);
    }
    config = to;
    std::memset(tiles, 0, sizeof(tiles));
  }
  static void Release() { config = TileConfig{0}; }
  template <int kTile>
  static void SetZero() {
    Check(config.palette == 1);
    tiles[kTile] = {};
  }
  template <int kTile>
  static void Load(const void* p, int64_t stride) {
    Check(config.palette == 1);
    tiles[kTile] = {};
    for (int r = 0; r < config.rows[kTile]; ++r) {
      std::memcpy(tiles[kTile].bytes[r], static_cast<const char*>(p) + r * stride, config.row_bytes[kTile]);
    }
  }
  template <int kTile>
  static void LoadOnce(const void* p, int64_t stride) {
    Load<kTile>(p, stride);
  }
  template <int kTile>
  static void Store(void* p, int64_t stride) {
    Check(config.palette == 1);
    for (int r = 0; r < config.rows[kTile]; ++r) {
      std::memcpy(static_cast<char*>(p) + r * stride, tiles[kTile].bytes[r], config.row_bytes[kTile]);
    }
  }
  template <int kSum, int kX, int kW>
  static void AddInt8Dots() {
    AddDots<kSum, kX, kW, int8_t>();
  }
  template <int kSum, int kX, int kW>
  static void AddInt8UnsignedDots() {
    AddDots<kSum, kX, kW, uint8_t>();
  }
  template <int kSum, int kX, int kW, typename Code>
  static void AddDots() {
    CheckShapes(kSum, kX, kW);
    for (int m = 0; m < config.rows[kSum]; ++m) {
      for (int n = 0; n < config.row_bytes[kSum] / 4; ++n) {
        auto sum = At<int32_t>(kSum, m, n);
        for (int k = 0; k < config.row_bytes[kX]; ++k) {
          sum += At<int8_t>(kX, m, k) * At<Code>(kW, k / 4, 4 * n + k % 4);
        }
        std::memcpy(tiles[kSum].bytes[m] + n * 4, &sum, sizeof(sum));
      }
    }
  }
  template <int kSum, int kX, int kW>
  static void AddBFloat16Dots() {
    CheckShapes(kSum, kX, kW);
    for (int m = 0; m < config.rows[kSum]; ++m) {
      for (int n = 0; n < config.row_bytes[kSum] / 4; ++n) {
        float parts[2] = {};
        for (int k = 0; k < config.row_bytes[kX] / 2; ++k) {
          float& part = parts[k % 2];
          part = Flushed(std::fma(BFloat16At(kX, m, k), BFloat16At(kW, k / 2, 2 * n + k % 2), part));
        }
        const float sum = Flushed(Flushed(At<float>(kSum, m, n)) + Flushed(parts[0] + parts[1]));
        std::memcpy(tiles[kSum].bytes[m] + n * 4, &sum, sizeof(sum));
      }
    }
  }

 private:
  static void CheckShapes(int sum, int x, int w) {
    Check(config.palette == 1);
    Check(config.rows[sum] == config.rows[x] && config.row_bytes[sum] == config.row_bytes[w]);
    Check(config.row_bytes[x] == 4 * config.rows[w]);
  }
  // Element `i` of row `row`.
  template <typename T>
  static T At(int tile, int row, int i) {
    T value;
    std::memcpy(&value, tiles[tile].bytes[row] + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  static float BFloat16At(int tile, int row, int i) {
    const uint32_t bits = static_cast<uint32_t>(At<uint16_t>(tile, row, i)) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    return Flushed(value);
  }
  static float Flushed(float value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
  }
};

using Registers = EmulatedRegisters;

#include "kernels/isa/avx512_amx/tile_kernels.inl"

}  // namespace vllm::kernels::emulated_amx

namespace vllm::kernels::emulated_amx_attention {

using avx512_amx::TileConfig;
using Registers = emulated_amx::EmulatedRegisters;

#include "kernels/isa/avx512_amx/attention_kernels.inl"

}  // namespace vllm::kernels::emulated_amx_attention

namespace vllm::kernels {

extern const AttentionKernels kEmulatedAmxAttentionKernels;
constinit const AttentionKernels kEmulatedAmxAttentionKernels = {emulated_amx_attention::Attention,
                                                                 emulated_amx_attention::AttentionPartial};
extern const TileKernels kEmulatedAmxTileKernels;
constinit const TileKernels kEmulatedAmxTileKernels = {emulated_amx::PackBFloat16<emulated_amx::Chunks>,
                                                       emulated_amx::LinearBFloat16,
                                                       emulated_amx::PackInt8Rows,
                                                       emulated_amx::LinearQuant,
                                                       kAmxTileRows,
                                                       emulated_amx::Int8TileRows,
                                                       emulated_amx::kRowsAtOnce};

}  // namespace vllm::kernels

#endif
