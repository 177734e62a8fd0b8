#include "tests/support/kv_probe_model.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "engine/models/registry.h"

namespace vllm::testing_support {

namespace {

KVProbePlan plan;

class KVProbeModel final : public Model {
 public:
  explicit KVProbeModel(std::unique_ptr<Model> inner) : inner_(std::move(inner)), layers_(inner_->Layers()) {
    if (!plan.whole_sequences) return;
    for (KVCacheSpec& layer : layers_.attention) layer.sliding_window = 0;
  }

  const CachedLayers& Layers() const override { return layers_; }

  void Forward(const ModelInput& input, KVCache& cache, float* hidden) override {
    if (!plan.poison) return inner_->Forward(input, cache, hidden);
    const std::vector<uint8_t> seen = SeenBlocks(input, cache);
    std::vector<std::vector<std::byte>> saved;
    ForEachUnseen(cache, seen, [&](std::byte* bytes, size_t size) {
      saved.emplace_back(bytes, bytes + size);
      // Bytes of 0xff are NaN in every floating-point KV type. For int8 they make the scales NaN.
      std::memset(bytes, 0xff, size);
    });
    inner_->Forward(input, cache, hidden);
    size_t next = 0;
    ForEachUnseen(cache, seen, [&](std::byte* bytes, size_t size) { std::memcpy(bytes, saved[next++].data(), size); });
  }

  void ComputeLogits(const float* hidden, int64_t num_rows, float* logits, int64_t stride,
                     const int32_t* lora_slots) override {
    inner_->ComputeLogits(hidden, num_rows, logits, stride, lora_slots);
  }

 private:
  static std::vector<uint8_t> SeenBlocks(const ModelInput& input, const KVCache& cache) {
    std::vector<uint8_t> seen(static_cast<size_t>(cache.num_blocks()));
    for (size_t g = 0; g < input.attention.groups.size(); ++g) {
      const int64_t window = cache.groups().windows[g];
      for (const AttentionSequence& sequence : input.attention.groups[g].sequences) {
        const int64_t begin = window > 0 ? std::max<int64_t>(0, sequence.first_position - window + 1) : 0;
        const int64_t last = sequence.first_position + sequence.num_rows - 1;
        for (int64_t block = begin / cache.block_size(); block <= last / cache.block_size(); ++block) {
          seen[static_cast<size_t>(sequence.block_table[block])] = 1;
        }
      }
    }
    return seen;
  }

  template <typename Visit>
  static void ForEachUnseen(KVCache& cache, const std::vector<uint8_t>& seen, Visit visit) {
    for (size_t layer = 0; layer < cache.groups().layers.size(); ++layer) {
      const KVLayerPlace place = cache.groups().layers[layer];
      // Visit only group 0, because the layers of the other groups share its memory.
      if (place.group != 0) continue;
      const kernels::KVCacheLayout layout = cache.Layout(layer);
      if (cache.groups().is_packed()) {
        // K of the first layer of a group is at the beginning of its blocks.
        if (place.tensor != 0) continue;
        const auto stride = static_cast<size_t>(layout.block_stride);
        for (size_t block = 0; block < seen.size(); ++block) {
          if (seen[block] == 0) visit(static_cast<std::byte*>(cache.key(layer)) + block * stride, stride);
        }
        continue;
      }
      const auto key_bytes = static_cast<size_t>(layout.num_kv_heads * layout.KeyBytes());
      const auto value_bytes = static_cast<size_t>(layout.num_kv_heads * layout.ValueBytes());
      for (size_t block = 0; block < seen.size(); ++block) {
        if (seen[block] != 0) continue;
        visit(static_cast<std::byte*>(cache.key(layer)) + block * key_bytes, key_bytes);
        visit(static_cast<std::byte*>(cache.value(layer)) + block * value_bytes, value_bytes);
      }
    }
  }

  std::unique_ptr<Model> inner_;
  CachedLayers layers_;
};

[[maybe_unused]] const bool kRegistered =
    RegisterModel("KVProbeForCausalLM", [](const LoadContext& load) -> std::unique_ptr<Model> {
      return std::make_unique<KVProbeModel>(BuildArchitecture("LlamaForCausalLM", load));
    });

}  // namespace

void SetKVProbePlan(const KVProbePlan& new_plan) { plan = new_plan; }

}  // namespace vllm::testing_support
