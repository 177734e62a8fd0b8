// Puts the special tokens around an encoded text ("post_processor" in tokenizer.json), for a single text.
// Read-only after construction, any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

class PostProcessor {
 public:
  // Leaves a text as it is.
  PostProcessor() : template_{kText} {}
  // Adds `prefix` in front and `suffix` behind.
  explicit PostProcessor(std::vector<int32_t> prefix, const std::vector<int32_t>& suffix = {})
      : template_(std::move(prefix)) {
    template_.push_back(kText);
    template_.insert(template_.end(), suffix.begin(), suffix.end());
  }
  // Throws TokenizerError; ids must be below id_limit.
  PostProcessor(const nlohmann::json& json, int32_t id_limit);

  void Apply(std::vector<int32_t>& ids) const;

 private:
  static constexpr int32_t kText = -1;
  // A chain of processors each of which doubles the text would otherwise grow without bound.
  static constexpr size_t kMaxItems = 4096;

  void AddProcessor(const nlohmann::json& json, int32_t id_limit);
  void Surround(const std::vector<int32_t>& with, const std::string& where);

  std::vector<int32_t> template_;  // ids, with kText where the text goes
};

}  // namespace vllm
