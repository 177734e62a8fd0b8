#include "engine/spec_decode/ngram_proposer.h"

#include <algorithm>

namespace vllm {

void NgramProposer::Propose(std::span<const DraftRequest> requests, Drafts& drafts) {
  for (const DraftRequest& request : requests) {
    ProposeFor(request, drafts);
    drafts.EndRequest();
  }
}

void NgramProposer::ProposeFor(const DraftRequest& request, Drafts& drafts) {
  const std::span<const int32_t> prompt = request.prompt_token_ids;
  const std::span<const int32_t> output = request.output_token_ids;
  const auto num_tokens = static_cast<int64_t>(prompt.size() + output.size());
  if (num_tokens < min_n_) return;
  const auto token = [&](int64_t i) {
    const auto index = static_cast<size_t>(i);
    return index < prompt.size() ? prompt[index] : output[index - prompt.size()];
  };
  const auto reversed = [&](int64_t i) { return token(num_tokens - 1 - i); };

  // The failure function of the reversed tokens. At i it is the length of the longest prefix of them, that is of the
  // request's last tokens read backwards, that ends at i, and i is not the end of that prefix itself. Only its first
  // max_n_ values are kept, because longer prefixes are not looked for.
  failure_.assign(static_cast<size_t>(std::min(max_n_, num_tokens)), 0);
  int64_t longest = 0;
  int64_t end = 0;  // the reversed position where the longest match ends, the last one of equal length
  int64_t length = 0;
  for (int64_t i = 1; i < num_tokens;) {
    if (reversed(length) == reversed(i)) {
      ++length;
      if (length >= longest) {
        longest = length;
        end = i;
      }
      if (i < max_n_) failure_[static_cast<size_t>(i)] = length;
      if (length == max_n_) length = failure_[static_cast<size_t>(max_n_ - 1)];
      ++i;
    } else if (length > 0) {
      length = failure_[static_cast<size_t>(length - 1)];
    } else {
      ++i;
    }
  }
  if (longest < min_n_) return;
  const int64_t begin = num_tokens - 1 - end + longest;
  const int64_t count = std::min(request.max_drafts, num_tokens - begin);
  for (int64_t i = 0; i < count; ++i) drafts.Add(token(begin + i), 1.0f);
}

}  // namespace vllm
