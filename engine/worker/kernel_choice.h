// ChooseKernels: the kernels of the workers, with the KernelVariants that are faster on this CPU. A measurement finds
// them and stores them in a file, so that later processes need not measure. Results do not depend on them.
#pragma once

#include <string>

#include "engine/config/vllm_config.h"
#include "kernels/kernels.h"
#include "kernels/tuning/kernel_variants.h"

namespace vllm {

// Returns the kernels of config.isa, by default of the best instruction set. Any thread. What cannot be read from
// config.load.kernel_variants_directory is measured, and what cannot be stored there is measured by every process.
const kernels::Kernels& ChooseKernels(const VllmConfig& config);

// Returns what the directory's file says for this CPU and `isa`. Otherwise calls `measure` and stores its result.
kernels::KernelVariants StoredVariants(const std::string& directory, kernels::Isa isa,
                                       kernels::KernelVariants (*measure)(kernels::Isa isa));

}  // namespace vllm
