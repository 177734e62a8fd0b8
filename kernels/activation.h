// Activation: the function between the two matrices of an MLP. A plain enum; any thread.
#pragma once

#include <cstdint>

namespace vllm::kernels {

enum class Activation : uint8_t { kSilu, kGelu, kGeluTanh, kQuickGelu, kRelu, kRelu2 };

}  // namespace vllm::kernels
