// The DecoderSpec of each architecture. Each function is in the file of its family; registry.cc maps names to them.
// Pure functions, any thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/models/decoder_spec.h"

namespace vllm {

DecoderSpec ArceeSpec(const ModelConfig& config);
DecoderSpec FalconSpec(const ModelConfig& config);
DecoderSpec GemmaSpec(const ModelConfig& config);
DecoderSpec Gemma2Spec(const ModelConfig& config);
DecoderSpec Gemma3Spec(const ModelConfig& config);
DecoderSpec Gpt2Spec(const ModelConfig& config);
DecoderSpec MixtralSpec(const ModelConfig& config);
DecoderSpec Olmo2Spec(const ModelConfig& config);
DecoderSpec OptSpec(const ModelConfig& config);
DecoderSpec Phi3Spec(const ModelConfig& config);
DecoderSpec Qwen2Spec(const ModelConfig& config);
DecoderSpec Qwen2MoeSpec(const ModelConfig& config);
DecoderSpec Qwen3Spec(const ModelConfig& config);
DecoderSpec StableLmSpec(const ModelConfig& config);
// The text model of a vision-language checkpoint. Throws ModelError if config.json's text_config names an unsupported
// model_type.
DecoderSpec VisionLanguageSpec(const ModelConfig& config);

}  // namespace vllm
