// Describes the checkpoint and the settings that packed weights depend on. A packed-weight file contains this
// description and is named after the description's hash. Pure functions of the files; any thread.
#pragma once

#include <string>
#include <string_view>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Returns a string with one line for each input that packing depends on: the architecture; the digests of config.json
// and of the tensor index; each file that `weights` were read from; the settings and the instruction set. The line of a
// tensor file contains its name, size, modification time, inode, and a digest of its beginning and of samples of the
// rest, because hashing gigabytes takes too long. `calibration` is the description of the calibration, or empty.
// Returns an empty string if the weights were not read from files.
std::string DescribeWeights(const VllmConfig& config, const WeightSource& weights, std::string_view isa,
                            std::string_view calibration = {});

// Returns the XXH3-128 hash of `text` as 32 hexadecimal digits.
std::string HexDigest(std::string_view text);

}  // namespace vllm
