// Adds special tokens around the ids of one text ("post_processor" in tokenizer.json). Owned by the Tokenizer.
// Read-only after construction, any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {

class PostProcessor {
 public:
  // Adds nothing.
  PostProcessor() : template_{kText} {}
  // Adds `prefix` before and `suffix` after the text.
  explicit PostProcessor(std::vector<int32_t> prefix, const std::vector<int32_t>& suffix = {})
      : template_(std::move(prefix)) {
    template_.push_back(kText);
    template_.insert(template_.end(), suffix.begin(), suffix.end());
  }
  // Throws TokenizerError if `json` is malformed, has an unsupported type or an id outside [0, id_limit), or if the
  // template is too long.
  PostProcessor(const nlohmann::json& json, int32_t id_limit);

  void Apply(std::vector<int32_t>& ids) const;

 private:
  static constexpr int32_t kText = -1;
  // Maximum length of template_. In a chain of processors, each may repeat the text, so the length could grow
  // exponentially.
  static constexpr size_t kMaxItems = 4096;

  void AddProcessor(const nlohmann::json& json, int32_t id_limit);
  // Replaces template_ with `outer`, in which the old template_ replaces each kText.
  void Wrap(const std::vector<int32_t>& outer, const std::string& where);

  std::vector<int32_t> template_;  // ids; kText marks the place of the text
};

}  // namespace vllm::tokenizer
