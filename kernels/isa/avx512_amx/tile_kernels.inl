// All tile kernels for AMX. Included inside a namespace with `Registers`, which is TileRegisters or emulates it.

using avx512::Bytes;
using avx512::kPrefetchOneRow;
using avx512::LargestMagnitude;
using avx512::StoreCodes;
using avx512::Vec;
using avx512_bf16::kUnitsPerPair;
using avx512_bf16::StorePairs;
using avx512_vnni::CodeLevels;
using avx512_vnni::Codes;
using avx512_vnni::FourBitCodes;
using avx512_vnni::IntSums;

inline constexpr int64_t kRowsAtOnce = 32 * kAmxTileRows;  // see TileKernels

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/tiles/linear_tiles.inl"
#include "kernels/impl/tiles/pack_units.inl"
#include "kernels/impl/tiles/pack_int8.inl"
#include "kernels/impl/tiles/pack_bfloat16.inl"
#include "kernels/isa/avx512_amx/passes.inl"
#include "kernels/isa/avx512_amx/whole_row_passes.inl"
#include "kernels/isa/avx512_amx/linear_bfloat16.inl"
#include "kernels/isa/avx512_amx/linear_row_scales.inl"
#include "kernels/impl/tiles/quant_scales.inl"
#include "kernels/isa/avx512_amx/unpack_codes.inl"
#include "kernels/isa/avx512_amx/linear_quant.inl"
// clang-format on
