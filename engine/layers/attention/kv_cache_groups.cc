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

// Number of elements per token. The bytes of a packed block are nearly proportional to it for every type.
int64_t ElementsPerToken(const KVCacheSpec& layer) {
  const int64_t key_dim = layer.value_dim > 0 ? 0 : layer.head_dim;
  return layer.num_kv_heads * (key_dim + kernels::PaddedHeadDim(layer.head_dim));
}

// Divides the layers of a kind into groups of at most `capacity` elements per token, in their order.
std::vector<std::vector<size_t>> FillGroups(const std::vector<KVCacheSpec>& layers, const std::vector<size_t>& kind,
                                            int64_t capacity) {
  std::vector<std::vector<size_t>> groups;
  int64_t free = 0;
  for (const size_t layer : kind) {
    const int64_t size = ElementsPerToken(layers[layer]);
    if (groups.empty() || size > free) {
      groups.emplace_back();
      free = capacity;
    }
    groups.back().push_back(layer);
    free -= size;
  }
  return groups;
}

// Returns the number of elements per token that a packed block has room for: between what the smallest kind of layers
// needs and 1.5 times as much. It minimizes the memory of a sequence that is four windows long, for which a group with
// full attention holds four times as many blocks as one with a window.
int64_t PackedCapacity(const std::vector<KVCacheSpec>& layers, const std::map<int64_t, std::vector<size_t>>& kinds) {
  constexpr int64_t kSequenceWindows = 4;
  int64_t smallest = INT64_MAX, largest_layer = 0;
  for (const auto& [window, members] : kinds) {
    int64_t size = 0;
    for (const size_t layer : members) {
      size += ElementsPerToken(layers[layer]);
      largest_layer = std::max(largest_layer, ElementsPerToken(layers[layer]));
    }
    smallest = std::min(smallest, size);
  }
  smallest = std::max(smallest, largest_layer);
  const auto cost = [&](int64_t capacity) {
    int64_t blocks = 0;
    for (const auto& [window, members] : kinds) {
      const auto num_groups = static_cast<int64_t>(FillGroups(layers, members, capacity).size());
      blocks += num_groups * (window == 0 ? kSequenceWindows : 1);
    }
    return capacity * blocks;
  };
  int64_t best = smallest;
  // Only the sizes of runs of a kind's first layers can be better.
  for (const auto& [window, members] : kinds) {
    int64_t size = 0;
    for (const size_t layer : members) {
      size += ElementsPerToken(layers[layer]);
      if (size > smallest && 2 * size <= 3 * smallest && cost(size) < cost(best)) best = size;
    }
  }
  return best;
}

KVCacheGroups PackedGroups(const std::vector<KVCacheSpec>& layers,
                           const std::map<int64_t, std::vector<size_t>>& kinds) {
  KVCacheGroups groups;
  groups.layers.resize(layers.size());
  groups.packed_layers = layers;
  const int64_t capacity = PackedCapacity(layers, kinds);
  for (const auto& [window, members] : kinds) {
    for (const std::vector<size_t>& group : FillGroups(layers, members, capacity)) {
      for (size_t i = 0; i < group.size(); ++i) groups.layers[group[i]] = {groups.windows.size(), i};
      groups.windows.push_back(window);
    }
  }
  return groups;
}

// Bytes of a layer in a packed block. Layers begin at cache lines.
int64_t PackedBytes(const KVCacheSpec& layer, int64_t block_size, kernels::KVDType dtype) {
  constexpr int64_t kLine = 64;
  return (layer.Layout(block_size, dtype).BlockBytes() + kLine - 1) / kLine * kLine;
}

}  // namespace

int64_t KVCacheGroups::BlockBytes(int64_t block_size, kernels::KVDType dtype) const {
  int64_t bytes = 0;
  for (const KVCacheSpec& tensor : tensors) bytes += tensor.Layout(block_size, dtype).BlockBytes();
  for (size_t i = 0; i < packed_layers.size(); ++i) {
    bytes = std::max(bytes, PackedOffset(i, block_size, dtype) + PackedBytes(packed_layers[i], block_size, dtype));
  }
  return bytes;
}

int64_t KVCacheGroups::PackedOffset(size_t layer, int64_t block_size, kernels::KVDType dtype) const {
  int64_t offset = 0;
  for (size_t i = 0; i < packed_layers.size(); ++i) {
    const bool is_before = layers[i].group == layers[layer].group && layers[i].tensor < layers[layer].tensor;
    if (is_before) offset += PackedBytes(packed_layers[i], block_size, dtype);
  }
  return offset;
}

KVCacheGroups MakeKVCacheGroups(const std::vector<KVCacheSpec>& layers) {
  std::map<int64_t, std::vector<size_t>> kinds;  // by window; full attention (0) sorts first
  bool same_heads = true;
  for (size_t i = 0; i < layers.size(); ++i) {
    kinds[layers[i].sliding_window].push_back(i);
    same_heads = same_heads && layers[i].num_kv_heads == layers[0].num_kv_heads &&
                 layers[i].head_dim == layers[0].head_dim && layers[i].value_dim == layers[0].value_dim;
  }
  // Without attention, no token needs the blocks of earlier ones.
  if (kinds.size() <= 1) return OneGroup(layers, layers.empty() ? 1 : layers[0].sliding_window);
  if (!same_heads) return PackedGroups(layers, kinds);

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
