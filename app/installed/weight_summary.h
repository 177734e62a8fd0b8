// WeightSummary: the totals of a model's tensors, from the headers of its weight files. A plain value. SummarizeWeights
// reads no weights; any thread may call it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "app/installed/model_location.h"
#include "engine/config/model_config.h"

namespace vllm::app {

struct WeightSummary {
  int64_t parameters = 0;  // packed codes count one by one; scales and zero points do not count
  int64_t bytes = 0;
  int64_t num_tensors = 0;
  std::string quantization;                        // "none", "gptq 4 bit", "Q4_K_M"
  std::map<std::string, int64_t> tensors_of_type;  // by the type's name in the file format
};

// Returns the totals of all weight files. Throws ModelError if a header is invalid or a file is missing.
WeightSummary SummarizeWeights(const ModelLocation& location, const ModelConfig& model);

}  // namespace vllm::app
