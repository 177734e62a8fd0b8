// The text of --calibration self: chunks that the unquantized model writes, each from the beginning of a text, with
// fixed seeds. The same model and settings always give the same tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/config/vllm_config.h"
#include "engine/executor/measured_calibration.h"

namespace vllm::app {

// Returns the token that a text begins with: BOS, or else EOS, which many models without BOS put between texts. None:
// the model has neither.
std::optional<int32_t> FirstToken(const ModelConfig& model);

// Returns a text of num_chunks chunks of `length` tokens. CalibrationText::chunks loads the model, lets it write with
// continuous batching, and frees it. It throws ModelError, ResourceError or std::bad_alloc. `config` is that of the
// quantized model, after Finalize. REQUIRES: 2 <= length < max_model_len; the model has a FirstToken and generates
// text.
CalibrationText WrittenText(const VllmConfig& config, int64_t num_chunks, int64_t length,
                            std::shared_ptr<CalibrationProgress> progress);

}  // namespace vllm::app
