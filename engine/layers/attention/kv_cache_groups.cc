#include "engine/layers/attention/kv_cache_groups.h"

#include <algorithm>
#include <map>

namespace vllm {

namespace {

KVCacheGroups OneGroup(const std::vector<KVCacheSpec>& layers, int64_t window) {
  KVCacheGroups groups;
  groups.windows = {window};
  groups.tensors = layers;
  for (size_t i = 0; i < layers.size(); ++i) groups.layers.push_back({0, i});
  return groups;
}

// Follows vLLM's rule. Layers with the same window are one kind. A group normally has as many layers as the rarest
// kind, which then needs no padding. If the most common kind has fewer than 1.5 times as many layers as the rarest one,
// a group has as many layers as the most common kind, because padding then costs less than more groups.
size_t LayersPerGroup(const std::map<int64_t, std::vector<size_t>>& kinds) {
  size_t min_layers = SIZE_MAX, max_layers = 0;
  for (const auto& [window, members] : kinds) {
    min_layers = std::min(min_layers, members.size());
    max_layers = std::max(max_layers, members.size());
  }
  return 2 * max_layers < 3 * min_layers ? max_layers : min_layers;
}

}  // namespace

int64_t KVCacheGroups::BlockBytes(int64_t block_size, kernels::KVDType dtype) const {
  int64_t bytes = 0;
  for (const KVCacheSpec& tensor : tensors) bytes += tensor.Layout(block_size, dtype).BlockBytes();
  return bytes;
}

KVCacheGroups MakeKVCacheGroups(const std::vector<KVCacheSpec>& layers) {
  std::map<int64_t, std::vector<size_t>> kinds;  // by window; full attention (0) sorts first
  bool same_heads = true;
  for (size_t i = 0; i < layers.size(); ++i) {
    kinds[layers[i].sliding_window].push_back(i);
    same_heads =
        same_heads && layers[i].num_kv_heads == layers[0].num_kv_heads && layers[i].head_dim == layers[0].head_dim;
  }
  // Without attention, no token needs the blocks of earlier ones.
  if (kinds.size() <= 1) return OneGroup(layers, layers.empty() ? 1 : layers[0].sliding_window);
  if (!same_heads) return OneGroup(layers, 0);

  const size_t per_group = LayersPerGroup(kinds);
  KVCacheGroups groups;
  groups.layers.resize(layers.size());
  groups.tensors.assign(per_group, layers[0]);
  for (const auto& [window, members] : kinds) {
    const size_t num_groups = (members.size() + per_group - 1) / per_group;
    for (size_t i = 0; i < members.size(); ++i) {
      groups.layers[members[i]] = {groups.windows.size() + i % num_groups, i / num_groups};
    }
    groups.windows.insert(groups.windows.end(), num_groups, window);
  }
  return groups;
}

}  // namespace vllm
