#include "engine/config/max_model_len.h"

#include <algorithm>

namespace vllm {

int64_t DerivedMaxModelLen(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  double positions = static_cast<double>(config.max_position_embeddings);
  switch (scaling.kind) {
    case RopeScaling::Kind::kLinear:
    case RopeScaling::Kind::kDynamic:
      positions *= scaling.factor;
      break;
    case RopeScaling::Kind::kYarn:
      positions = static_cast<double>(scaling.original_max_position_embeddings) * scaling.factor;
      break;
    case RopeScaling::Kind::kNone:
    case RopeScaling::Kind::kLongRope:  // max_position_embeddings is already the scaled length
    case RopeScaling::Kind::kFactors:
    case RopeScaling::Kind::kProportional:
    case RopeScaling::Kind::kLlama3:
      break;
  }
  return static_cast<int64_t>(std::clamp(positions, 1.0, 0x1p30));
}

}  // namespace vllm
