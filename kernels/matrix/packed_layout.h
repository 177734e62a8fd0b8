// The version of the packed-weight layouts. A constant.
#pragma once

#include <cstdint>

namespace vllm::kernels {

// Covers PackedMatrix, PackedQuantMatrix, CheckpointQuantMatrix and the conversions of quant_codes.h. Increment it
// with every change of the bytes that any of them produces: a packed-weight file of another version is rejected. A
// test compares the bytes of small matrices with the version.
inline constexpr uint32_t kPackedLayoutVersion = 3;

}  // namespace vllm::kernels
