// SmolLM3ForCausalLM: Llama whose config takes the rotation away from some layers (NoPE, arXiv 2305.19466).
#include "engine/models/decoder.h"

namespace vllm {

namespace {

const DecoderRegistration kSmolLm3("SmolLM3ForCausalLM", BaseDecoderSpec);

}  // namespace

}  // namespace vllm
