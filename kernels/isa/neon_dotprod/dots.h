// Dot products of int8 for NEON with sdot. See isa/generic/dots.h for the contracts.
#pragma once

#include "kernels/isa/neon/dots.h"

namespace vllm::kernels::neon_dotprod {

using neon::Bytes;
using neon::CodeLevels;
using neon::Codes;
using neon::FourBitCodes;
using neon::FourBitShape;
using neon::kPrefetchOneRow;
using neon::LargestMagnitude;
using neon::NarrowScaleShape;
using neon::SixBitCodes;
using neon::SixBitShape;
using neon::StoreCodes;
using neon::Vec;
using neon::WideScaleShape;

struct SdotDot {
  static int32x4_t Add(int32x4_t sum, int8x16_t codes, int8x16_t x) { return vdotq_s32(sum, codes, x); }
};
using IntSums = neon::IntSumsWith<SdotDot>;
using FourBitSums = neon::SmallSumsWith<SdotDot>;
using SixBitSums = FourBitSums;

}  // namespace vllm::kernels::neon_dotprod
