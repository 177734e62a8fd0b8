// The functions that make the DecoderSpec of each architecture for which BaseDecoderSpec is not enough. Each is defined
// in the file of its family. registry.cc maps the names of architectures to these functions. Pure functions; any
// thread.
#pragma once

#include "engine/config/model_config.h"
#include "engine/models/decoder/decoder_spec.h"

namespace vllm {

DecoderSpec ArceeSpec(const ModelConfig& config);
DecoderSpec BailingMoeSpec(const ModelConfig& config);
DecoderSpec BertSpec(const ModelConfig& config);
DecoderSpec DistilBertSpec(const ModelConfig& config);
DecoderSpec DeepseekSpec(const ModelConfig& config);
DecoderSpec FalconSpec(const ModelConfig& config);
DecoderSpec FalconH1Spec(const ModelConfig& config);
DecoderSpec GemmaSpec(const ModelConfig& config);
DecoderSpec Gemma2Spec(const ModelConfig& config);
DecoderSpec Gemma3Spec(const ModelConfig& config);
DecoderSpec Gemma3nSpec(const ModelConfig& config);
DecoderSpec Gemma4Spec(const ModelConfig& config);
DecoderSpec GlmSpec(const ModelConfig& config);
DecoderSpec Glm4Spec(const ModelConfig& config);
DecoderSpec Glm4MoeSpec(const ModelConfig& config);
DecoderSpec Gpt2Spec(const ModelConfig& config);
DecoderSpec GptNeoxSpec(const ModelConfig& config);
DecoderSpec GteSpec(const ModelConfig& config);
DecoderSpec JinaBertSpec(const ModelConfig& config);
DecoderSpec MPNetSpec(const ModelConfig& config);
DecoderSpec ModernBertSpec(const ModelConfig& config);
DecoderSpec NomicBertSpec(const ModelConfig& config);
DecoderSpec Lfm2Spec(const ModelConfig& config);
DecoderSpec GptOssSpec(const ModelConfig& config);
DecoderSpec OlmoeSpec(const ModelConfig& config);
DecoderSpec SeedOssSpec(const ModelConfig& config);
DecoderSpec Starcoder2Spec(const ModelConfig& config);
DecoderSpec Ernie45Spec(const ModelConfig& config);
DecoderSpec Exaone4Spec(const ModelConfig& config);
DecoderSpec HunYuanDenseSpec(const ModelConfig& config);
DecoderSpec HeliumSpec(const ModelConfig& config);
DecoderSpec NemotronSpec(const ModelConfig& config);
DecoderSpec NemotronHSpec(const ModelConfig& config);
DecoderSpec Ernie45MoeSpec(const ModelConfig& config);
DecoderSpec GraniteMoeSpec(const ModelConfig& config);
DecoderSpec Mamba2DecoderSpec(const ModelConfig& config);
DecoderSpec MixtralSpec(const ModelConfig& config);
DecoderSpec Olmo2Spec(const ModelConfig& config);
DecoderSpec OptSpec(const ModelConfig& config);
DecoderSpec PhimoeSpec(const ModelConfig& config);
DecoderSpec Phi3Spec(const ModelConfig& config);
DecoderSpec Qwen2Spec(const ModelConfig& config);
DecoderSpec Qwen2MoeSpec(const ModelConfig& config);
DecoderSpec Qwen3Spec(const ModelConfig& config);
DecoderSpec Qwen3NextSpec(const ModelConfig& config);
DecoderSpec StableLmSpec(const ModelConfig& config);
// Returns the spec of the text model of a vision-language checkpoint. Throws ModelError if the model_type in
// config.json's text_config is not supported.
DecoderSpec VisionLanguageSpec(const ModelConfig& config);

}  // namespace vllm
