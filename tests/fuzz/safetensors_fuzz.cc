// Fuzzes the safetensors header parser. The tensors of an accepted file must be inside the file and together
// have at most as many bytes as the file.
#include <span>

#include "engine/config/errors.h"
#include "engine/model_loader/hf/safetensors_header.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {

void FuzzOne(std::string_view bytes) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  try {
    size_t total = 0;
    for (const SafetensorsEntry& entry : ParseSafetensors(file, "fuzz")) {
      Require(entry.data.empty() || (entry.data.data() >= file.data() &&
                                     entry.data.data() + entry.data.size() <= file.data() + file.size()),
              "tensors are inside the file");
      total += entry.data.size();
    }
    Require(total <= file.size(), "tensors have at most as many bytes as the file");
  } catch (const ModelError&) {
  }
}

}  // namespace vllm
