// WeightSummary: what the headers of a model's weight files say of its tensors; no weights are read. A plain value.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "app/model/model_hub.h"
#include "engine/config/model_config.h"

namespace vllm {

struct WeightSummary {
  int64_t parameters = 0;  // numbers, those packed into others counted apart; scales and the like are none
  int64_t bytes = 0;
  int64_t num_tensors = 0;
  std::string quantization;                        // "none", "gptq 4 bit", "Q4_K_M"
  std::map<std::string, int64_t> tensors_of_type;  // by the format's names
};

// Throws ModelError when a header is bad or a file missing.
WeightSummary SummarizeWeights(const ModelLocation& location, const ModelConfig& model);

}  // namespace vllm
