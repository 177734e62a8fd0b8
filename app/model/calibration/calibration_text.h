// The text of --calibration, and the calibration that is made from it. Main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "app/cli/settings.h"
#include "engine/config/vllm_config.h"
#include "engine/executor/measured_calibration.h"
#include "tokenizer/tokenizer.h"

namespace vllm::app {

// Tokens that the model reads at a time, and the most chunks of a text that it reads.
inline constexpr int64_t kCalibrationChunk = 256;
inline constexpr int64_t kMaxCalibrationChunks = 128;

// The value of the flag for a text that the model writes (WrittenText).
inline constexpr std::string_view kSelfCalibration = "self";

// Throws ConfigError if the flag is set and the model is not quantized with int4 at load, or cannot write the text that
// the flag asks for.
void CheckCalibration(const Settings& settings, const ModelConfig& model);

// Cuts the tokens into chunks of `length` and returns `max_chunks` of them at equal distances, or all if there are
// fewer. An incomplete chunk at the end is left out.
std::vector<std::vector<int32_t>> CalibrationChunks(std::span<const int32_t> tokens, int64_t length,
                                                    int64_t max_chunks);

// Returns the calibration of the flag. Reads and tokenizes its file, or lets the model write a text when the
// calibration is measured. `config` is final. Throws ConfigError if the file cannot be read, is empty, is not UTF-8 or
// is shorter than a chunk, ModelError if there is a file but no tokenizer, and ResourceError if memory or descriptors
// run out. REQUIRES: the flag is set, and CheckCalibration was called.
std::shared_ptr<MeasuredCalibration> MakeCalibration(const Settings& settings, const VllmConfig& config,
                                                     const tokenizer::Tokenizer* tokenizer,
                                                     std::shared_ptr<CalibrationProgress> progress);

}  // namespace vllm::app
