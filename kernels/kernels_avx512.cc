// The kernels compiled for AVX-512 F, BW, DQ and VL (see CMakeLists.txt for the flags). Nothing here may include code
// that other files share inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa_tables.h"
#include "kernels/simd/vec_avx512.h"

namespace vllm::avx512 {

#include "kernels/impl/math.inl"
// clang-format off: the rest builds on math.inl
#include "kernels/impl/attention.inl"
#include "kernels/impl/elementwise.inl"
#include "kernels/impl/linear.inl"
// clang-format on

}  // namespace vllm::avx512

namespace vllm {

const Kernels kAvx512Kernels = {"avx512",       avx512::Linear,    avx512::RmsNorm, avx512::SiluAndMul,  avx512::Add,
                                avx512::Rotary, avx512::Attention, avx512::ExpRow,  &kAvx512QuantKernels};

}  // namespace vllm
