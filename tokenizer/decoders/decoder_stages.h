// The stages a DecoderRun is made of, one for each DecoderStep::Kind.
#pragma once

#include <memory>

#include "tokenizer/decoders/token_decoder.h"

namespace vllm {

// REQUIRES: step and next outlive the stage.
std::unique_ptr<TokenSink> MakeDecoderStage(const DecoderStep& step, TokenSink& next);

}  // namespace vllm
