// Changes a text before it is split into words ("normalizer" in tokenizer.json). Owned by the Tokenizer.
// Read-only after construction, any thread.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace vllm::tokenizer {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Normalizes `text` in place. REQUIRES: text is valid UTF-8. The result is valid UTF-8 too.
  virtual void Apply(std::string& text) const = 0;
};

// Returns null if `json` is null. Throws TokenizerError if `json` is malformed, has an unsupported type or exceeds the
// limits on steps and growth.
std::unique_ptr<Normalizer> MakeNormalizer(const nlohmann::json& json);

}  // namespace vllm::tokenizer
