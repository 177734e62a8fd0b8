// Calibration: the weights of a model that were quantized on a calibration text, computed only if some matrix needs
// them: matrices from the packed-weight cache do not. Owned by the program's model loader, which outlives the load.
#pragma once

#include <string>

#include "engine/model_loader/calibration/calibrated_weights.h"

namespace vllm {

class Calibration {
 public:
  virtual ~Calibration() = default;
  // Returns a text that identifies the result: the digest of the tokens and the settings of the computation.
  virtual const std::string& description() const = 0;
  // Returns the weights. The first call computes them, which takes longer than reading the text, and other threads that
  // call at the same time wait for it. Throws as Worker does.
  virtual const CalibratedWeights& Weights() = 0;
};

}  // namespace vllm
