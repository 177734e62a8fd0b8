// A text fingerprint of the checkpoint and the settings that packed weights depend on. Files of packed weights contain
// it and are named by its hash. Pure functions of the files; any thread.
#pragma once

#include <string>
#include <string_view>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// Returns a text with one line per fact that packing depends on: config.json and the tensor index by digest; each file
// that `weights` were read from; the settings, the instruction set and the rank. A tensor file's line has its size,
// time, inode and a digest of its beginning and of samples, because hashing gigabytes takes too long. Returns an empty
// text if the weights were not read from files.
std::string DescribeWeights(const VllmConfig& config, const WeightSource& weights, std::string_view isa, int rank);

// Returns the XXH3-128 hash of `text` as 32 hexadecimal digits.
std::string HexDigest(std::string_view text);

}  // namespace vllm
