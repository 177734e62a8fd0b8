// QuantizationConfig: how a checkpoint's linear weights are quantized, or how they are to be quantized at load. Written
// once when the model's config is read, then read by anyone.
#pragma once

#include <cstdint>

namespace vllm {

enum class QuantizationMethod : uint8_t { kNone };

struct QuantizationConfig {
  QuantizationMethod method = QuantizationMethod::kNone;
};

}  // namespace vllm
