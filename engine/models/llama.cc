// LlamaForCausalLM (arXiv 2302.13971; Llama 2 and 3, SmolLM2, and many more): pre-norm decoder with rotary positions,
// grouped-query attention and a SiLU-gated MLP. Mistral and Granite are this decoder; their configs bring a sliding
// window, or multipliers.
#include "engine/models/decoder.h"

namespace vllm {

namespace {

const DecoderRegistration kLlama("LlamaForCausalLM", BaseDecoderSpec);
const DecoderRegistration kMistral("MistralForCausalLM", BaseDecoderSpec);
const DecoderRegistration kGranite("GraniteForCausalLM", BaseDecoderSpec);

}  // namespace

}  // namespace vllm
