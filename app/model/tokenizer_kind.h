// Determines the kind of a model's tokenizer. Reads only the beginning of its files if that is enough, because a
// vocabulary may have 150,000 tokens. A pure function of the files; any thread.
#pragma once

#include <string>

#include "app/installed/model_location.h"

namespace vllm::app {

// Returns the string that Tokenizer::Kind would return. For byte-level BPE in a GGUF file, appends the name of the
// pre-tokenizer, as in "byte-level BPE (qwen2)". Throws ModelError or TokenizerError. REQUIRES: the model has a
// tokenizer.
std::string TokenizerKind(const ModelLocation& location);

}  // namespace vllm::app
