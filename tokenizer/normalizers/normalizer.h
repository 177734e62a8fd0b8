// Changes a text before it is split into words ("normalizer" in tokenizer.json).
// Read-only after construction, any thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace vllm {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // REQUIRES: text is valid UTF-8; it still is afterwards.
  virtual void Apply(std::string& text) const = 0;
};

// Null when `json` is null. Throws TokenizerError, by name for a type that is not supported.
std::unique_ptr<Normalizer> MakeNormalizer(const nlohmann::json& json);

}  // namespace vllm
