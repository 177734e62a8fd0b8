// Activation: the activation function of an MLP (hidden_act in config.json). A plain enum; any thread.
#pragma once

#include <cstdint>

namespace vllm::kernels {

enum class Activation : uint8_t { kSilu, kGelu, kGeluTanh, kQuickGelu, kRelu, kRelu2 };

}  // namespace vllm::kernels
