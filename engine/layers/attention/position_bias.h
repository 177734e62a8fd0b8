// Biases that are added to the scores of attention and depend on the head and on the distance between the query and the
// key (kernels::AttentionArgs::position_bias). Pure functions; any thread.
//
// T5 (arXiv 1910.10683) and MPNet (arXiv 2004.09297) group distances in buckets and learn a value for each bucket and
// head. ALiBi (arXiv 2108.12409) has no parameters: the bias of head h is -slope[h] * distance.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/layers/load_context.h"

namespace vllm {

// Keys that are this far away or farther belong to the last bucket of their side.
inline constexpr int64_t kRelativeBiasSpan = 128;
inline constexpr int64_t kRelativeBiasBuckets = 32;

// Returns the bucket of a key at position p + distance for a query at position p, in [0, kRelativeBiasBuckets).
int64_t RelativeBucket(int64_t distance);

// Reads tensor `name`, [kRelativeBiasBuckets, num_heads], and returns the biases of the heads of `shard`:
// [shard.count, 2 * kRelativeBiasSpan + 1], as in kernels::AttentionArgs. Throws ModelError if
// the tensor is missing or has the wrong shape or type.
std::vector<float> LoadRelativeBias(const WeightSource& weights, const std::string& name, int64_t num_heads,
                                    Shard shard);

// Returns the slopes of ALiBi, [num_heads]. REQUIRES: num_heads > 0.
std::vector<float> AlibiSlopes(int64_t num_heads);

// Returns the biases of ALiBi for the heads of `shard` and distances up to `span` in both directions:
// [shard.count, 2 * span + 1].
std::vector<float> AlibiBias(int64_t num_heads, Shard shard, int64_t span);

}  // namespace vllm
