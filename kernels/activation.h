// Activation: the activation function of an MLP (hidden_act in config.json) or of a gate. A plain enum; any thread.
#pragma once

#include <cstdint>

namespace vllm::kernels {

enum class Activation : uint8_t { kSilu, kGelu, kGeluTanh, kQuickGelu, kRelu, kRelu2, kSigmoid };

}  // namespace vllm::kernels
