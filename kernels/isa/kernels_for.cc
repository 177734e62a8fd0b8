#include "kernels/isa/kernels_for.h"

#include "kernels/kernel_tables.h"

namespace vllm {

const Kernels& KernelsFor(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return kAvx2Kernels;
  if (isa == Isa::kAvx2Vnni) return kAvx2VnniKernels;
  if (isa == Isa::kAvx512) return kAvx512Kernels;
  if (isa == Isa::kAvx512Bf16) return kAvx512Bf16Kernels;
#endif
#if defined(__aarch64__)
  if (isa == Isa::kNeon) return kNeonKernels;
  if (isa == Isa::kNeonDotprod) return kNeonDotprodKernels;
#endif
  (void)isa;
  return kGenericKernels;
}

}  // namespace vllm
