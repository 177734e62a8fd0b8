// Selects the kernel table of an instruction set at run time. Any thread.
#pragma once

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace vllm {

// REQUIRES: AvailableIsas() contains `isa`.
const Kernels& KernelsFor(Isa isa);

}  // namespace vllm
