// Attention kernels compiled for AVX-512 with AMX (flags: kernels/CMakeLists.txt). Do not call inline functions that
// other files also call, unless they are always_inline: the linker keeps one copy of each, and this file's copy would
// not run on every CPU.
#include "kernels/isa/avx512_amx/tile_registers.h"
#include "kernels/isa/avx512_bf16/dots.h"
#include "kernels/kernel_tables.h"

namespace vllm::kernels::avx512_amx {

using Registers = TileRegisters;

#include "kernels/isa/avx512_amx/attention_kernels.inl"

}  // namespace vllm::kernels::avx512_amx

namespace vllm::kernels {

constinit const AttentionKernels kAvx512AmxAttentionKernels = {avx512_amx::Attention, avx512_amx::AttentionPartial};

}  // namespace vllm::kernels
