// The version of the packed-weight layouts, which every packed-weight file contains (engine/model_loader/packed_cache).
// A constant.
#pragma once

#include <cstdint>

namespace vllm::kernels {

// Covers PackedMatrix, PackedQuantMatrix, CheckpointQuantMatrix and the conversions of quant_codes.h. Increment it
// whenever the bytes that any of them produces change; files with another version are rejected. PackedLayoutTest
// compares hashes of the bytes of small matrices.
inline constexpr uint32_t kPackedLayoutVersion = 6;

}  // namespace vllm::kernels
