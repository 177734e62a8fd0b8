// The attention kernels for AMX. Included inside a namespace with `Registers`, which is TileRegisters or emulates it.

using avx512::kQueryTile;
using avx512::kScoreRegisters;
using avx512::kValueChunks;
using avx512::kValueQueries;
using avx512::Vec;
using avx512_bf16::KeepBits;
using avx512_bf16::LoadPairs;
using avx512_bf16::Pairs;
using avx512_bf16::StoreEightPairs;

// The order matters: later files use earlier ones.
// clang-format off
#include "kernels/impl/math.inl"
#include "kernels/impl/unroll.inl"
#include "kernels/impl/attention_work.inl"
#include "kernels/impl/kv_elements.inl"
#include "kernels/isa/avx512_amx/kv_bfloat16_tiles.inl"
#include "kernels/impl/attention.inl"
// clang-format on
