// What a GGUF file carries for text: its vocabulary, its chat template and the ids that end an answer. Views are on the
// file. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model_loader/gguf/file.h"
#include "tokenizer/jinja/chat_template.h"
#include "tokenizer/loaders/gguf_vocabulary.h"

namespace vllm {

// Throws ModelError when a part is missing or of the wrong type, or parts that belong together differ in length.
GgufVocabulary ReadGgufVocabulary(const GgufMetadata& metadata);
bool HasGgufTokenizer(const GgufMetadata& metadata);
// "SentencePiece BPE", "BPE byte-level (qwen2)", ...: what the tokenizer would be, without making it.
std::string GgufTokenizerKind(const GgufMetadata& metadata);
// Throws ModelError or TokenizerError.
std::unique_ptr<Tokenizer> LoadGgufTokenizer(const GgufFile& file);

// tokenizer.ggml.eos_token_id, eot_ and eom_token_id, then the control tokens that are known to end a turn whether the
// file says so or not, as llama.cpp has them. The first is the EOS. Ids outside the vocabulary are refused.
std::vector<int32_t> GgufStopIds(const GgufMetadata& metadata, int64_t vocab_size);
std::optional<int32_t> GgufBosId(const GgufMetadata& metadata, int64_t vocab_size);

// tokenizer.chat_template; without it the one of the named templates that is alone or called "default". None when there
// is no template.
std::optional<ChatTemplateSource> GgufChatTemplate(const GgufMetadata& metadata);

}  // namespace vllm
