// Reads the GGUF metadata of encoders: bert (also RoBERTa, XLM-R and DistilBERT), nomic-bert, modern-bert, eurobert and
// gemma-embedding. Pure functions; any thread.
#pragma once

#include <string_view>

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/format/file.h"

namespace vllm {

// Returns true if the attention of the GGUF architecture is not causal.
bool IsGgufEncoder(std::string_view architecture);

// Sets how an embedding model pools, which files of other models do not say.
void ReadGgufPooling(const GgufMetadata& keys, ModelConfig& config);

// If the file is that of Qwen3-Reranker, whose classifier has the rows of "yes" and "no" of the output projection, sets
// the classifier. Throws ModelError if the file has another classifier.
void ReadGgufReranker(const GgufFile& file, ModelConfig& config);

// Sets the fields that only encoders have, the windows on both sides of a token, the Dense modules and the classifier.
// REQUIRES: the sizes, windows and rotation in `config` are set, and ReadGgufPooling has been called. Throws ModelError
// naming the key or tensor.
void ReadGgufEncoder(const GgufFile& file, ModelConfig& config);

}  // namespace vllm
