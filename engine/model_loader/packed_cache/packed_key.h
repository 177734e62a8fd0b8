// What packed weights were made of, as a text: files of packed weights carry it and are named by its hash. Pure
// functions of the files; any thread.
#pragma once

#include <string>
#include <string_view>

#include "engine/config/vllm_config.h"
#include "engine/model_loader/weights.h"

namespace vllm {

// A line for each of the files that `weights` were read from, with its size, time, inode and a digest of its beginning
// and of samples, so that gigabytes need not be read, and for config.json; the settings that packing depends on; the
// instruction set and the rank. Empty when the weights were not read from files.
std::string DescribeWeights(const VllmConfig& config, const WeightSource& weights, std::string_view isa, int rank);

// 32 hexadecimal digits.
std::string HexDigest(std::string_view text);

}  // namespace vllm
