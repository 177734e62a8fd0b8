#include "app/hub/curated_models.h"

#include <array>

namespace vllm::app {
namespace {

constexpr int64_t kTokens = 4096;

constexpr int64_t KvBytes(int64_t layers, int64_t kv_heads, int64_t head_dim) {
  return 4 * layers * kv_heads * head_dim;
}

// The names and sizes are those that public pages showed in November 2026.
constexpr auto kModels = std::to_array<CuratedModel>({
    {"HuggingFaceTB/SmolLM2-135M-Instruct", 272, KvBytes(30, 3, 64), "Apache-2.0", "to try things out"},
    {"HuggingFaceTB/SmolLM2-360M-Instruct-GGUF:Q8_0", 386, KvBytes(32, 5, 64), "Apache-2.0", "short answers"},
    {"Qwen/Qwen3-0.6B-GGUF:Q8_0", 639, KvBytes(28, 8, 128), "Apache-2.0", "thinks"},
    {"ggml-org/gemma-3-1b-it-GGUF:Q4_K_M", 806, KvBytes(26, 1, 256), "Gemma", "many languages"},
    {"bartowski/Llama-3.2-1B-Instruct-GGUF:Q4_K_M", 808, KvBytes(16, 8, 64), "Llama 3.2", "fast"},
    {"allenai/OLMo-2-0425-1B-Instruct-GGUF:Q4_K_M", 936, KvBytes(16, 16, 128), "Apache-2.0", "open training data"},
    {"Qwen/Qwen2.5-0.5B-Instruct", 1000, KvBytes(24, 2, 64), "Apache-2.0", "unquantized"},
    {"bartowski/SmolLM2-1.7B-Instruct-GGUF:Q4_K_M", 1056, KvBytes(24, 32, 64), "Apache-2.0", "general"},
    {"Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF:Q4_K_M", 1120, KvBytes(28, 2, 128), "Apache-2.0", "code"},
    {"bartowski/granite-3.1-2b-instruct-GGUF:Q4_K_M", 1545, KvBytes(40, 8, 64), "Apache-2.0", "summaries, extraction"},
    {"ggml-org/SmolLM3-3B-GGUF:Q4_K_M", 1915, KvBytes(36, 4, 128), "Apache-2.0", "thinks"},
    {"ggml-org/gemma-3-4b-it-GGUF:Q4_K_M", 2490, KvBytes(34, 4, 256), "Gemma", "many languages"},
    {"unsloth/Phi-4-mini-instruct-GGUF:Q4_K_M", 2492, KvBytes(32, 8, 128), "MIT", "mathematics"},
    {"Qwen/Qwen3-4B-GGUF:Q4_K_M", 2497, KvBytes(36, 8, 128), "Apache-2.0", "thinks"},
    {"Qwen/Qwen3-8B-GGUF:Q4_K_M", 5028, KvBytes(36, 8, 128), "Apache-2.0", "thinks; the best of these"},
});

}  // namespace

std::span<const CuratedModel> CuratedModels() { return kModels; }

int64_t MemoryMb(const CuratedModel& model) {
  return model.download_mb + kTokens * model.kv_cache_bytes_per_token / 1'000'000;
}

std::string GigabytesText(int64_t megabytes) {
  const int64_t tenths = (megabytes + 50) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB";
}

}  // namespace vllm::app
