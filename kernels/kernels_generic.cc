// The kernels compiled for any machine (see CMakeLists.txt for the flags). Nothing here may include code that other
// files share inline: the linker could keep the copy made for this instruction set and run it everywhere.
#include "kernels/isa_tables.h"
#include "kernels/simd/vec_generic.h"

namespace vllm::generic {

#include "kernels/impl/math.inl"
// clang-format off: the rest builds on math.inl
#include "kernels/impl/attention.inl"
#include "kernels/impl/elementwise.inl"
#include "kernels/impl/linear.inl"
// clang-format on

}  // namespace vllm::generic

namespace vllm {

const Kernels kGenericKernels = {"generic",           generic::Linear, generic::RmsNorm,
                                 generic::SiluAndMul, generic::Add,    generic::Rotary,
                                 generic::Attention,  generic::ExpRow, &kGenericQuantKernels};

}  // namespace vllm
