// ModelDigest: a number that tells whether two runs used the same model files and chat template. The chat stores it
// with each message, because token ids have no meaning for another tokenizer. A pure function of the files; any thread.
#pragma once

#include <cstdint>

#include "app/model/model_hub.h"
#include "app/model/prompt_renderer.h"

namespace vllm::app {

// Returns the XXH3-64 hash of the template, its special tokens and the model's files: the first 32 MiB and the size of
// a GGUF file, which contain its vocabulary; or of a directory the names, sizes and, for files of at most 32 MiB other
// than weights, the contents. Files that cannot be read count as empty.
uint64_t ModelDigest(const ModelLocation& location, const PromptRenderer& renderer);

}  // namespace vllm::app
