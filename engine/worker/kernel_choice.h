// ChooseKernels: the kernels of the workers, with the shape of tiles that is fastest on this CPU. The shape is measured
// once per process and stored in a file, so that later processes need not measure it. Results do not depend on it.
#pragma once

#include <string>

#include "engine/config/vllm_config.h"
#include "kernels/kernels.h"
#include "kernels/tuning/tile_shapes.h"

namespace vllm {

// Returns the kernels of config.isa, by default of the best instruction set. Any thread. A shape that cannot be read
// from config.load.tile_shape_directory is measured, and one that cannot be stored there is measured by every process.
const kernels::Kernels& ChooseKernels(const VllmConfig& config);

// Returns the shape in the directory's file for this CPU and `isa`. Otherwise calls `measure` and stores its result.
kernels::TileShape StoredTileShape(const std::string& directory, kernels::Isa isa,
                                   kernels::TileShape (*measure)(kernels::Isa isa));

}  // namespace vllm
