#include "app/model/calibration/written_text.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/core/inproc_client.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"

namespace vllm::app {
namespace {

// Increment it when the same model writes other tokens.
constexpr char kVersion[] = "1";
constexpr int64_t kMaxRunning = 64;

using Chunks = std::vector<std::vector<int32_t>>;

[[noreturn]] void ThrowFailure(const std::string& why) {
  throw ModelError("--calibration: self: the model cannot write the text: " + why);
}

// The whole vocabulary at temperature 1: the text then has the frequencies that the model expects in texts. After EOS,
// the model continues with another text.
SamplingParams Sampling(uint64_t seed, int64_t max_tokens) {
  SamplingParams params;
  params.seed = seed;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  params.detokenize = false;
  params.output_kind = RequestOutputKind::kDelta;
  return params;
}

Chunks Write(const VllmConfig& config, int64_t num_chunks, int64_t length, CalibrationProgress& progress) {
  LLMEngine engine(config, nullptr, std::make_unique<InprocClient>(config, MakeExecutor));
  if (engine.max_model_len() <= length) {
    throw ResourceError("--calibration: self: the KV cache holds only " + std::to_string(engine.max_model_len()) +
                        " tokens, and a chunk of the text has " + std::to_string(length));
  }
  progress.num_tokens = num_chunks * (length - 1);
  Chunks chunks(static_cast<size_t>(num_chunks), std::vector<int32_t>{*FirstToken(config.model)});
  for (size_t i = 0; i < chunks.size(); ++i) {
    engine.AddRequest(std::to_string(i), chunks[i], Sampling(i, length - 1));
  }
  while (engine.HasUnfinishedRequests()) {
    for (const RequestOutput& output : engine.Step()) {
      if (!output.error.empty()) ThrowFailure(output.error);
      std::vector<int32_t>& chunk = chunks[std::stoul(output.request_id)];
      const std::vector<int32_t>& tokens = output.outputs.front().token_ids;
      chunk.insert(chunk.end(), tokens.begin(), tokens.end());
      progress.num_tokens_written += static_cast<int64_t>(tokens.size());
    }
  }
  return chunks;
}

}  // namespace

std::optional<int32_t> FirstToken(const ModelConfig& model) {
  if (model.bos_token_id) return model.bos_token_id;
  if (!model.eos_token_ids.empty()) return model.eos_token_ids.front();
  return std::nullopt;
}

CalibrationText WrittenText(const VllmConfig& config, int64_t num_chunks, int64_t length,
                            std::shared_ptr<CalibrationProgress> progress) {
  VllmConfig writer = UnquantizedConfig(config);
  writer.model.max_model_len = length + 1;
  writer.scheduler.max_num_seqs = kMaxRunning;
  writer.scheduler.max_num_batched_tokens = std::max(length + 1, kMaxRunning);
  CalibrationText text;
  text.description = "written by the model, version " + std::string(kVersion) + ", " + std::to_string(num_chunks) +
                     " chunks of " + std::to_string(length) + " after token " +
                     std::to_string(*FirstToken(config.model));
  text.max_chunk_tokens = length;
  text.chunks = [writer = std::move(writer), num_chunks, length, progress = std::move(progress)] {
    try {
      return Write(writer, num_chunks, length, *progress);
    } catch (const EngineDeadError& error) {
      ThrowFailure(error.what());
    }
  };
  return text;
}

}  // namespace vllm::app
