// Tile kernels compiled for AVX-512 with AMX (flags: kernels/CMakeLists.txt). Do not call inline functions that other
// files also call, unless they are always_inline: the linker keeps one copy of each, and this file's copy would not run
// on every CPU.
#include "kernels/isa/avx512_amx/tile_registers.h"
#include "kernels/isa/avx512_bf16/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_amx {

using Registers = TileRegisters;

using avx512::Bytes;
using avx512::LargestMagnitude;
using avx512::StoreCodes;
using avx512::Vec;
using avx512_bf16::StorePairs;
using avx512_vnni::CodeLevels;
using avx512_vnni::Codes;
using avx512_vnni::FourBitCodes;
using avx512_vnni::IntSums;

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/unroll.inl"
#include "kernels/impl/linear_tiles.inl"
#include "kernels/impl/pack_units.inl"
#include "kernels/impl/pack_int8.inl"
#include "kernels/impl/pack_bfloat16.inl"
#include "kernels/isa/avx512_amx/passes.inl"
#include "kernels/isa/avx512_amx/linear_bfloat16.inl"
#include "kernels/isa/avx512_amx/linear_quant.inl"
// clang-format on

}  // namespace vllm::kernels::avx512_amx

namespace vllm::kernels {

constinit const TileKernels kAvx512AmxTileKernels = {avx512_amx::PackBFloat16<avx512_amx::RowMajor>,
                                                     avx512_amx::LinearBFloat16, avx512_amx::PackInt8ForRows,
                                                     avx512_amx::LinearQuant};

}  // namespace vllm::kernels
