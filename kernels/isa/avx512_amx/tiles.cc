// Tile kernels compiled for AVX-512 with AMX (flags: kernels/CMakeLists.txt). Do not call inline functions that other
// files also call, unless they are always_inline: the linker keeps one copy of each, and this file's copy would not run
// on every CPU.
#include "kernels/isa/avx512_amx/tile_registers.h"
#include "kernels/isa/avx512_bf16/dots.h"
#include "kernels/kernel_tables.h"
#include "kernels/thread_scratch.h"

namespace vllm::kernels::avx512_amx {

using Registers = TileRegisters;

#include "kernels/isa/avx512_amx/tile_kernels.inl"

}  // namespace vllm::kernels::avx512_amx

namespace vllm::kernels {

constinit const TileKernels kAvx512AmxTileKernels = {avx512_amx::PackBFloat16<avx512_amx::Chunks>,
                                                     avx512_amx::LinearBFloat16,
                                                     avx512_amx::PackInt8Rows,
                                                     avx512_amx::LinearQuant,
                                                     kAmxTileRows,
                                                     avx512_amx::Int8TileRows,
                                                     avx512_amx::kRowsAtOnce};

}  // namespace vllm::kernels
