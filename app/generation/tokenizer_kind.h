// What kind of tokenizer a model has, told from the beginnings of its files where that is enough: a vocabulary of
// 150,000 tokens is not read for it. A pure function of the files.
#pragma once

#include <string>

#include "app/model_hub/model_hub.h"

namespace vllm {

// As Tokenizer::Kind says it. Throws ModelError or TokenizerError. REQUIRES: HasTokenizer.
std::string TokenizerKind(const ModelLocation& location);

}  // namespace vllm
