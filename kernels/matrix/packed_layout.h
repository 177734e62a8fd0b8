// The version of the forms that weights are packed in. Pure value.
#pragma once

#include <cstdint>

namespace vllm {

// Of PackedMatrix, PackedQuantMatrix, CheckpointQuantMatrix and of what quant_codes.h reads for them. Higher with every
// change of the bytes that any of them packs: files of packed weights are refused by it. A test holds it to the bytes
// of small matrices.
inline constexpr uint32_t kPackedLayoutVersion = 3;

}  // namespace vllm
