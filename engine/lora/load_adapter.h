// LoadLoRAAdapter: opens an adapter of any supported format. A pure function of the files; any thread.
#pragma once

#include <memory>
#include <string>

#include "engine/config/model_config.h"
#include "engine/lora/lora_adapter.h"

namespace vllm {

// Loads the adapter at `path` for `model`: a PEFT directory, or a GGUF file. Throws ModelError as LoadPeftAdapter and
// LoadGgufAdapter do, or if the rank of a module is above `max_lora_rank`, and ResourceError.
std::shared_ptr<const LoRAAdapter> LoadLoRAAdapter(const std::string& name, const std::string& path,
                                                   const ModelConfig& model, int64_t max_lora_rank);

}  // namespace vllm
