#include "engine/model_loader/quantization_loader.h"

namespace vllm {

std::optional<StoredMatrix> LoadQuantized(const WeightSource& /*weights*/, const ModelConfig& /*model*/,
                                          const std::string& /*name*/, const MatrixPart& /*part*/) {
  return std::nullopt;
}

}  // namespace vllm
