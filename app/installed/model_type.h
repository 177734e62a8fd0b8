// Says in a few words what kind of model is installed, for lists. Reads at most 64 KiB of a file; any thread.
#pragma once

#include <string>

#include "app/installed/model_location.h"

namespace vllm::app {

// Returns "GGUF Q4_K_M", "safetensors bfloat16", "safetensors awq" and so on. A GGUF file's quantization is that in its
// name, or else in its metadata. A directory's type is that in config.json, or "LoRA adapter" if it has an
// adapter_config.json instead. Returns only "GGUF" or "safetensors" if it
// is unknown, and "no weights" for a directory without safetensors files.
std::string ModelType(const ModelLocation& location);

}  // namespace vllm::app
