// Calibration: the moments of a model's activations on a calibration text, measured only if some matrix needs them:
// matrices from the packed-weight cache do not. Owned by the program's model loader, which outlives the load.
#pragma once

#include <string>

#include "engine/model_loader/calibration/activation_moments.h"

namespace vllm {

class Calibration {
 public:
  virtual ~Calibration() = default;
  // Returns a text that identifies the result: the digest of the tokens and the settings of the measurement.
  virtual const std::string& description() const = 0;
  // Returns the moments. The first call measures them, which takes as long as reading the text, and other threads that
  // call at the same time wait for it. Throws as Worker does.
  virtual const ActivationMoments& Moments() = 0;
};

}  // namespace vllm
