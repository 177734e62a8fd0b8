// Finds the bundled model, the guide. Reads directories only; any thread.
#pragma once

#include <optional>

#include "app/installed/model_location.h"

namespace vllm::app {

// Returns the location of the bundled model, or nullopt if it is not installed.
std::optional<ModelLocation> FindShippedModel();
// Throws ModelError if the bundled model is not installed.
ModelLocation ShippedModel();

}  // namespace vllm::app
