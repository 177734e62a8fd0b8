// What a Tokenizer is made of, put together by the loader. For this folder only.
#pragma once

#include <memory>

#include "tokenizer/added_vocabulary.h"
#include "tokenizer/decoder.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/post_processor.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_model.h"

namespace vllm {

struct TokenizerParts {
  AddedVocabulary added;
  std::unique_ptr<Normalizer> normalizer;  // null: none
  PreTokenizers pre_tokenizers;
  std::unique_ptr<TokenModel> model;
  PostProcessor post_processor;
  TokenDecoder decoder = TokenDecoder::ByteLevel();
  int32_t vocab_size = 0;
  std::string kind;  // what Tokenizer::Kind tells
};

// Gives each token without an id the one the reference would (the one its text has already, else the next free one) and
// adds it. To be called once.
// REQUIRES: parts.model and parts.normalizer are set. Throws TokenizerError.
void AddTokens(std::vector<AddedToken> tokens, TokenizerParts& parts);

// The bytes of a file. Throws TokenizerError.
std::string ReadFileForTokenizer(const std::string& path);

}  // namespace vllm
