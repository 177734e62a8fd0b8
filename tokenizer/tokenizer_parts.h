// The parts of a Tokenizer. A loader builds them; the Tokenizer owns them and never changes them. For tokenizer/ only.
#pragma once

#include <memory>

#include "tokenizer/added_vocabulary.h"
#include "tokenizer/decoders/token_decoder.h"
#include "tokenizer/models/token_model.h"
#include "tokenizer/normalizers/normalizer.h"
#include "tokenizer/pre_tokenizers/pre_tokenizer.h"
#include "tokenizer/processors/post_processor.h"

namespace vllm::tokenizer {

struct TokenizerParts {
  AddedVocabulary added;
  std::unique_ptr<Normalizer> normalizer;  // may be null
  PreTokenizers pre_tokenizers;
  std::unique_ptr<TokenModel> model;
  PostProcessor post_processor;
  TokenDecoder decoder = TokenDecoder::ByteLevel();
  int32_t vocab_size = 0;
  std::string kind;  // the result of Tokenizer::Kind
};

}  // namespace vllm::tokenizer
