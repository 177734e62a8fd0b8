#include "app/model/calibration/calibration_text.h"

#include <algorithm>
#include <string>
#include <utility>

#include "app/model/calibration/written_text.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"
#include "tokenizer/unicode/utf8.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxTextBytes = size_t{256} << 20;

std::string ReadText(const std::string& path) {
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path, kMaxTextBytes, text);
  const std::string what = "--calibration: " + Escape(path) + ": ";
  if (file.is_out_of_resources()) throw ResourceError(what + file.error);
  if (!file.ok()) throw ConfigError(what + file.error);
  if (text.empty()) throw ConfigError(what + "is empty");
  for (size_t at = 0; at < text.size();) {
    const tokenizer::Utf8Step step = tokenizer::DecodeUtf8(text, at);
    if (step.kind != tokenizer::Utf8Step::Kind::kValid) {
      throw ConfigError(what + "is not valid UTF-8 (at byte " + std::to_string(at) + ")");
    }
    at += step.length;
  }
  return text;
}

}  // namespace

void CheckCalibration(const Settings& settings, const ModelConfig& model) {
  const std::string text = settings.Text("calibration").value_or("");
  if (text.empty()) return;
  if (model.quantization.method != QuantizationMethod::kInt4) {
    throw ConfigError("--calibration: needs --quantization int4");
  }
  if (text != kSelfCalibration) return;
  if (!model.can_generate) {
    throw ConfigError("--calibration: self: the model generates no text; use a file instead");
  }
  if (!FirstToken(model)) {
    throw ConfigError(
        "--calibration: self: the model has no BOS or EOS token to begin a text with; use a file instead");
  }
}

std::vector<std::vector<int32_t>> CalibrationChunks(std::span<const int32_t> tokens, int64_t length,
                                                    int64_t max_chunks) {
  const int64_t available = static_cast<int64_t>(tokens.size()) / length;
  const int64_t count = std::min(available, max_chunks);
  std::vector<std::vector<int32_t>> chunks;
  for (int64_t i = 0; i < count; ++i) {
    const auto chunk = tokens.subspan(static_cast<size_t>(available * i / count * length), static_cast<size_t>(length));
    chunks.emplace_back(chunk.begin(), chunk.end());
  }
  return chunks;
}

std::shared_ptr<MeasuredCalibration> MakeCalibration(const Settings& settings, const VllmConfig& config,
                                                     const tokenizer::Tokenizer* tokenizer,
                                                     std::shared_ptr<CalibrationProgress> progress) {
  const std::string path = settings.Text("calibration").value_or("");
  // A request needs room for one more token.
  const int64_t length = std::min(kCalibrationChunk, config.model.max_model_len - 1);
  if (path == kSelfCalibration) {
    if (length < 2) throw ConfigError("--calibration: self: needs --max-model-len 3 or more");
    CalibrationText text = WrittenText(config, kMaxCalibrationChunks, length, progress);
    return std::make_shared<MeasuredCalibration>(config, std::move(text), std::move(progress));
  }
  if (tokenizer == nullptr)
    throw ModelError("--calibration: " + Escape(path) + ": the model has no tokenizer to read it");
  const std::vector<int32_t> tokens =
      tokenizer->Encode(ReadText(path), /*add_special_tokens=*/true, /*parse_special=*/false);
  std::vector<std::vector<int32_t>> chunks = CalibrationChunks(tokens, length, kMaxCalibrationChunks);
  if (chunks.empty()) {
    throw ConfigError("--calibration: " + Escape(path) + ": is too short (" + std::to_string(tokens.size()) +
                      " of at least " + std::to_string(length) + " tokens)");
  }
  return std::make_shared<MeasuredCalibration>(config, TextOfChunks(std::move(chunks)), std::move(progress));
}

}  // namespace vllm::app
