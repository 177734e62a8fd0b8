// The tables themselves, one a translation unit. Only kernels.cc reads them; everyone else goes through KernelsFor.
#pragma once

#include "kernels/kernels.h"

namespace vllm {

extern const Kernels kGenericKernels;
extern const QuantKernels kGenericQuantKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const QuantKernels kAvx2QuantKernels;
extern const Kernels kAvx512Kernels;
extern const QuantKernels kAvx512QuantKernels;
#endif

}  // namespace vllm
