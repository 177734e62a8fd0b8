// Numbers that tell whether two runs used the same model. Pure functions of the files; any thread.
#pragma once

#include <cstdint>

#include "app/installed/model_location.h"
#include "app/model/prompt_renderer.h"

namespace vllm::app {

// For the token ids of stored messages, which have no meaning for another tokenizer, and so independent of the weights.
// Returns the XXH3-64 hash of the template, its special tokens and the model's files: the first 32 MiB and the size of
// a GGUF file, which contain its vocabulary; or of a directory the names, sizes and, for files of at most 32 MiB other
// than weights, the contents. Files that cannot be read count as empty.
uint64_t ModelDigest(const ModelLocation& location, const PromptRenderer& renderer);

// For the answers of a batch job, which depend on the weights too. Returns the XXH3-64 hash of the names, sizes and
// contents of the model's files. Of a file larger than 32 MiB, only the first MiB and 4 KiB in each 4 MiB are read, so
// that the digest of a large model takes milliseconds; a change of a few values elsewhere is not noticed.
uint64_t ModelContentDigest(const ModelLocation& location);

}  // namespace vllm::app
