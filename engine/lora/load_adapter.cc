#include "engine/lora/load_adapter.h"

#include <filesystem>
#include <system_error>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/lora/gguf_adapter.h"
#include "engine/lora/peft_adapter.h"

namespace vllm {

std::shared_ptr<const LoRAAdapter> LoadLoRAAdapter(const std::string& name, const std::string& path,
                                                   const ModelConfig& model, int64_t max_lora_rank) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  if (type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::none) {
    throw ModelError("adapter " + Escape(path) + ": no such file or directory");
  }
  std::shared_ptr<const LoRAAdapter> adapter =
      type == std::filesystem::file_type::directory ? LoadPeftAdapter(name, path) : LoadGgufAdapter(name, path, model);
  for (const LoRAModule& module : adapter->modules) {
    if (module.rank <= max_lora_rank) continue;
    throw ModelError("adapter " + Escape(path) + ": tensor " + Escape(module.tensor_name) +
                         ": rank is above the limit (" + std::to_string(module.rank) + " > " +
                         std::to_string(max_lora_rank) + ")",
                     "Raise it with --max-lora-rank " + std::to_string(module.rank) + ".");
  }
  return adapter;
}

}  // namespace vllm
