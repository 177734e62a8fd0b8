// The kernels compiled for AVX2, FMA and F16C (see CMakeLists.txt for the flags). Nothing here may include code that
// other files share inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa_tables.h"
#include "kernels/simd/vec_avx2.h"

namespace vllm::avx2 {

#include "kernels/impl/math.inl"
// clang-format off: the rest builds on math.inl
#include "kernels/impl/attention.inl"
#include "kernels/impl/elementwise.inl"
#include "kernels/impl/linear.inl"
// clang-format on

}  // namespace vllm::avx2

namespace vllm {

const Kernels kAvx2Kernels = {"avx2",       avx2::Linear,    avx2::RmsNorm, avx2::SiluAndMul,  avx2::Add,
                              avx2::Rotary, avx2::Attention, avx2::ExpRow,  &kAvx2QuantKernels};

}  // namespace vllm
