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
      shard_(ShardOfRows(vocab_size, load.step.rank(), load.step.world_size())),
      weight_(load, model, SplitMatrix(load.step, LayerOf(name), vocab_size), hidden_size,
              LinearWeight::Use::kVocabulary) {}

void VocabParallelEmbedding::Embed(std::span<const int32_t> token_ids, float* out) const {
  const int64_t hidden_size = weight_.num_columns();
  const auto num_rows = static_cast<int64_t>(token_ids.size());
  const std::span<const PeerBuffers> peers = step_.communicator->Exchange({.out = out});
  ForEachRow(step_, num_rows, hidden_size, [&](int64_t row, int thread) {
    const int64_t local = token_ids[static_cast<size_t>(row)] - shard_.begin;
    if (local < 0 || local >= shard_.count) return;
    const float* const from = out + row * hidden_size;
    weight_.UnpackRow(step_, local, thread, out + row * hidden_size);
    for (const PeerBuffers& peer : peers) {
      if (peer.out != out) std::copy_n(from, hidden_size, peer.out + row * hidden_size);
    }
  });
  step_.communicator->Barrier();
}

void VocabParallelEmbedding::Logits(const float* hidden, int64_t num_rows, float* logits, int64_t logits_stride) const {
  weight_.Multiply(step_, nullptr, hidden, weight_.num_columns(), num_rows, logits + shard_.begin, logits_stride);
}

}  // namespace vllm
