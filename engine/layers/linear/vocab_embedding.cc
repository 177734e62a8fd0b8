#include "engine/layers/linear/vocab_embedding.h"

#include <algorithm>
#include <string_view>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

std::string LayerOf(const std::string& tensor) {
  constexpr std::string_view kSuffix = ".weight";
  return tensor.ends_with(kSuffix) ? tensor.substr(0, tensor.size() - kSuffix.size()) : tensor;
}

}  // namespace

VocabParallelEmbedding::VocabParallelEmbedding(const LoadContext& load, const ModelConfig& model,
                                               const std::string& name, int64_t vocab_size, int64_t hidden_size)
    : step_(load.step),
      shard_(ShardOf(vocab_size, load.step.rank(), load.step.world_size())),
      weight_(load, model, {{LayerOf(name), vocab_size, shard_}}, hidden_size, {0, hidden_size},
              LinearWeight::Use::kVocabulary) {}

void VocabParallelEmbedding::Embed(std::span<const int32_t> token_ids, float* out) const {
  const int64_t hidden_size = weight_.num_columns();
  const auto num_rows = static_cast<int64_t>(token_ids.size());
  ForEachRow(step_, num_rows, hidden_size, [&](int64_t row, int thread) {
    float* to = out + row * hidden_size;
    const int64_t local = token_ids[static_cast<size_t>(row)] - shard_.begin;
    if (local >= 0 && local < shard_.count) {
      weight_.UnpackRow(step_, local, thread, to);
    } else {
      std::fill_n(to, hidden_size, 0.0f);
    }
  });
  // All ranks except one add zeros, so the sum is exact.
  step_.communicator->AllReduce(out, num_rows * hidden_size);
}

void VocabParallelEmbedding::Logits(const float* hidden, int64_t num_rows, float* logits, int64_t logits_stride) const {
  weight_.Multiply(step_, nullptr, hidden, weight_.num_columns(), num_rows, logits + shard_.begin, logits_stride);
}

}  // namespace vllm
