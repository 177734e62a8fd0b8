// The grids of GGML's IQ1, IQ2 and IQ3 formats: the lists of eight or four values that an index in a block selects.
// Constants; any thread.
#pragma once

#include <cstdint>

namespace vllm::kernels {

// An entry is a run of bytes, one per column. The values are those of ggml-common.h (iq1s_grid, iq2xxs_grid, ...),
// except that those of iq1 are multiplied by 8, so that adding or subtracting the format's delta of 1/8 gives an
// integer.
struct BlockGrids {
  alignas(8) uint8_t iq1[2048][8];  // int8: -8, 0 or 8; for IQ1_S and IQ1_M
  uint8_t iq2_xxs[256][8];          // 8, 25 or 43, also in the next two
  uint8_t iq2_xs[512][8];
  uint8_t iq2_s[1024][8];
  uint8_t iq3_xxs[256][4];  // 4, 12, 20, 28, 36, 44, 52 or 62
  uint8_t iq3_s[512][4];    // odd numbers from 1 to 15
};

extern const BlockGrids kBlockGrids;

}  // namespace vllm::kernels
