#include "engine/request/request.h"

#include <algorithm>
#include <utility>

#include "kernels/threading/check.h"

namespace vllm {

Request::Request(EngineCoreRequestPtr core)
    : core_(std::move(core)),
      extra_keys_(BlockExtraKeys(*core_)),
      num_prompt_tokens_(static_cast<int64_t>(core_->prompt_token_ids.size())),
      output_token_ids_(core_->prior_output_token_ids) {}

void Request::ReserveTokens(int64_t max_model_len, int64_t block_size) {
  // CheckStop ends the request at max_model_len tokens at the latest. The additional token is a margin.
  const int64_t remaining = std::max<int64_t>(0, max_model_len - num_prompt_tokens()) + 1;
  const int64_t num_output = std::min(remaining, std::max<int64_t>(1, params().max_tokens.value_or(remaining)));
  output_token_ids_.reserve(static_cast<size_t>(num_output));
  block_hashes_.reserve(static_cast<size_t>((num_prompt_tokens() + num_output) / block_size + 1));
  scratch_.reserve(static_cast<size_t>(block_size));
}

std::span<const int32_t> Request::Tokens(int64_t begin, int64_t count, std::vector<int32_t>& scratch) const {
  VLLM_CHECK(begin >= 0 && count >= 0 && begin + count <= num_tokens());
  const std::span<const int32_t> prompt(core_->prompt_token_ids);
  const size_t size = static_cast<size_t>(count);
  if (begin + count <= num_prompt_tokens()) return prompt.subspan(static_cast<size_t>(begin), size);
  if (begin >= num_prompt_tokens()) {
    return std::span(output_token_ids_).subspan(static_cast<size_t>(begin - num_prompt_tokens()), size);
  }
  const auto head = prompt.subspan(static_cast<size_t>(begin));
  scratch.assign(head.begin(), head.end());
  scratch.insert(scratch.end(), output_token_ids_.begin(),
                 output_token_ids_.begin() + static_cast<std::ptrdiff_t>(size - head.size()));
  return scratch;
}

std::span<const BlockHash> Request::BlockHashes(int64_t num_blocks, int64_t block_size,
                                                BlockHashFunction hash_function) {
  for (auto i = static_cast<int64_t>(block_hashes_.size()); i < num_blocks; ++i) {
    const BlockHash& parent = i == 0 ? kNoneHash : block_hashes_.back();
    block_hashes_.push_back(hash_function(parent, Tokens(i * block_size, block_size, scratch_), extra_keys(i == 0)));
  }
  return std::span(block_hashes_).first(static_cast<size_t>(num_blocks));
}

}  // namespace vllm
