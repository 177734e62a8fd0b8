// Dot products of int8 for NEON with sdot. See dots_generic.h for the names' meaning.
#pragma once

#include "kernels/isa/neon/dots.h"

namespace vllm::neon_dotprod {

using neon::CodeLevels;
using neon::Codes;
using neon::FourBitCodes;
using neon::FourBitShape;
using neon::LargestMagnitude;
using neon::NarrowScaleShape;
using neon::SixBitCodes;
using neon::SixBitShape;
using neon::StoreCodes;
using neon::Vec;
using neon::WideScaleShape;

struct MachineDot {
  static int32x4_t Add(int32x4_t sum, int8x16_t codes, int8x16_t x) { return vdotq_s32(sum, codes, x); }
};
using IntSums = neon::IntSumsOf<MachineDot>;
using FourBitSums = neon::SmallSumsOf<MachineDot>;
using SixBitSums = FourBitSums;

}  // namespace vllm::neon_dotprod
