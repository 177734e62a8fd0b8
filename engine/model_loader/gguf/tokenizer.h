// Reads the tokenizer of a GGUF file: its vocabulary, chat template and stop token ids. Returned views borrow the file.
// Pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model_loader/gguf/format/file.h"
#include "tokenizer/jinja/chat_template.h"
#include "tokenizer/loaders/gguf_vocabulary.h"

namespace vllm {

// Throws ModelError if a required key is missing, a value has the wrong type or is out of range, or there are scores or
// token types but not one per token.
tokenizer::GgufVocabulary ReadGgufVocabulary(const GgufMetadata& metadata);
bool HasGgufTokenizer(const GgufMetadata& metadata);
// Returns the kind of tokenizer without loading it: "SentencePiece BPE", "byte-level BPE (qwen2)", ...
std::string GgufTokenizerKind(const GgufMetadata& metadata);
// Throws ModelError or TokenizerError.
std::unique_ptr<tokenizer::Tokenizer> LoadGgufTokenizer(const GgufFile& file);

// Returns tokenizer.ggml.eos_token_id, eot_token_id and eom_token_id if they are set, then the control and user-defined
// tokens with common end-of-generation names, such as "<|im_end|>". The EOS token is first if it is set. Throws
// ModelError if an id is outside the vocabulary.
std::vector<int32_t> GgufStopIds(const GgufMetadata& metadata, int64_t vocab_size);
std::optional<int32_t> GgufBosId(const GgufMetadata& metadata, int64_t vocab_size);

// Returns tokenizer.chat_template. If that key is missing, returns the template named "default" or, if there is exactly
// one named template, that one. Returns nullopt if there is no such template.
std::optional<tokenizer::ChatTemplateSource> GgufChatTemplate(const GgufMetadata& metadata);

}  // namespace vllm
