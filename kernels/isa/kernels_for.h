// Selects the kernel table of an instruction set at run time. Any thread may call this.
#pragma once

#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace vllm::kernels {

// Returns a table with static lifetime.
// REQUIRES: AvailableIsas() contains `isa`.
const Kernels& KernelsFor(Isa isa);

}  // namespace vllm::kernels
