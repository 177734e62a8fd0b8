// LoadGgufAdapter: reads a LoRA adapter in a GGUF file, as written by llama.cpp's convert_lora_to_gguf.py. A pure
// function of the file; any thread.
//
// general.type is "adapter", adapter.type is "lora", general.architecture is that of the base model. For each adapted
// tensor T of the base, such as "blk.0.attn_q.weight", the file has T.lora_a [rank, in] and T.lora_b [out, rank]. The
// scale is adapter.lora.alpha / rank, or 1 if alpha is 0 or missing. If the converter reorders the rows of T, it
// reorders those of T.lora_b in the same way.
#pragma once

#include <memory>
#include <string>

#include "engine/config/model_config.h"
#include "engine/lora/lora_adapter.h"

namespace vllm {

// Loads the adapter for `model` from the file at `path` and calls it `name`. Throws ModelError if the file is
// malformed, is no LoRA adapter, or belongs to another architecture, and ResourceError if it cannot be mapped.
std::shared_ptr<const LoRAAdapter> LoadGgufAdapter(const std::string& name, const std::string& path,
                                                   const ModelConfig& model);

}  // namespace vllm
