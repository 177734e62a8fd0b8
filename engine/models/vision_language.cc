// Models that read images and text. The model_type in config.json's text_config says which of the other families the
// text model belongs to. Only the text model runs, and the tensors of the other parts are ignored. The text model must
// be a plain causal decoder.
#include <string_view>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/models/architecture_specs.h"
#include "engine/models/registry.h"

namespace vllm {

namespace {

constexpr std::pair<std::string_view, std::string_view> kTextArchitectures[] = {
    {"llama", "LlamaForCausalLM"},           {"mistral", "MistralForCausalLM"},
    {"mixtral", "MixtralForCausalLM"},       {"qwen2", "Qwen2ForCausalLM"},
    {"qwen3", "Qwen3ForCausalLM"},           {"qwen3_moe", "Qwen3MoeForCausalLM"},
    {"gemma2", "Gemma2ForCausalLM"},         {"gemma", "GemmaForCausalLM"},
    {"gemma3_text", "Gemma3ForCausalLM"},    {"gemma4_text", "Gemma4ForCausalLM"},
    {"granite", "GraniteForCausalLM"},       {"phi3", "Phi3ForCausalLM"},
    {"qwen3_5_text", "Qwen3_5ForCausalLM"},  {"qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"},
    {"ministral3", "Ministral3ForCausalLM"}, {"gemma3n_text", "Gemma3nForCausalLM"},
    {"qwen2_vl", "Qwen2ForCausalLM"},        {"qwen2_vl_text", "Qwen2ForCausalLM"},
    {"qwen2_5_vl", "Qwen2ForCausalLM"},      {"qwen2_5_vl_text", "Qwen2ForCausalLM"},
    {"qwen3_vl_text", "Qwen3ForCausalLM"},   {"qwen3_vl_moe_text", "Qwen3MoeForCausalLM"},
};

}  // namespace

DecoderSpec VisionLanguageSpec(const ModelConfig& config) {
  for (const auto& [model_type, architecture] : kTextArchitectures) {
    if (model_type == config.model_type) return MakeDecoderSpec(architecture, config);
  }
  std::string known;
  for (const auto& [model_type, architecture] : kTextArchitectures) {
    known += (known.empty() ? "" : ", ") + std::string(model_type);
  }
  throw ModelError("cannot load model " + Escape(config.model) + ": unknown text_config.model_type (" +
                   Escape(config.model_type, 60) + "; known: " + known + ")");
}

}  // namespace vllm
