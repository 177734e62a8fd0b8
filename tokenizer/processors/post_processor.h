// Adds special tokens around the ids of one text or of a pair of texts ("post_processor" in tokenizer.json). Owned by
// the Tokenizer. Read-only after construction, any thread.
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
  // Adds `prefix` before and `suffix` after the text. If `between` is not empty, pairs are joined with it between the
  // texts. With `has_types`, the second text and the suffix then have token type 1.
  explicit PostProcessor(const std::vector<int32_t>& prefix, const std::vector<int32_t>& suffix = {},
                         const std::vector<int32_t>& between = {}, bool has_types = false);
  // Throws TokenizerError if `json` is malformed, has an unsupported type or an id outside [0, id_limit), or if the
  // template is too long.
  PostProcessor(const nlohmann::json& json, int32_t id_limit);

  void Apply(std::vector<int32_t>& ids) const;
  // Returns the number of tokens that Apply adds to a text that is not empty.
  size_t NumAdded() const;

  // Returns true if the file says how a pair of texts is joined.
  bool JoinsPairs() const { return !pair_.empty(); }
  size_t NumAddedToPair() const { return pair_.size() - 2; }
  // Joins the ids of two texts. type_ids receives the type of each token. REQUIRES: JoinsPairs().
  std::vector<int32_t> ApplyToPair(const std::vector<int32_t>& first, const std::vector<int32_t>& second,
                                   std::vector<int32_t>& type_ids) const;

 private:
  static constexpr int32_t kText = -1;
  static constexpr int32_t kSecondText = -2;
  struct PairItem {
    int32_t id;
    int32_t type_id;
  };
  // Maximum length of template_. In a chain of processors, each may repeat the text, so the length could grow
  // exponentially.
  static constexpr size_t kMaxItems = 4096;

  void AddProcessor(const nlohmann::json& json, int32_t id_limit);
  // Reads the template `name` of a TemplateProcessing.
  static std::vector<PairItem> ReadTemplate(const nlohmann::json& json, const char* name, const std::string& where,
                                            int32_t id_limit);
  // Replaces template_ with `outer`, in which the old template_ replaces each kText.
  void Wrap(const std::vector<int32_t>& outer, const std::string& where);
  // Sets pair_, or clears it if the file has more than one template for pairs.
  void SetPair(std::vector<PairItem> items);

  std::vector<int32_t> template_;  // ids; kText marks the place of the text
  std::vector<PairItem> pair_;     // kText and kSecondText mark the texts; empty: unknown
  bool has_pair_ = false;          // a processor has set pair_
};

}  // namespace vllm::tokenizer
