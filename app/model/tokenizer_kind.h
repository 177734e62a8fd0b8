// What kind of tokenizer a model has, told from the beginnings of its files where that is enough: a vocabulary of
// 150,000 tokens is not read for it. A pure function of the files.
#pragma once

#include <string>

#include "app/model/model_hub.h"

namespace vllm {

// As Tokenizer::Kind says it; for GGUF with the name of its words: "BPE byte-level (qwen2)". Throws ModelError or
// TokenizerError. REQUIRES: HasTokenizer.
std::string TokenizerKind(const ModelLocation& location);

}  // namespace vllm
