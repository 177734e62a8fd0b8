#include "engine/layers/attention/position_bias.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "kernels/matrix/packed_matrix.h"

namespace vllm {

int64_t RelativeBucket(int64_t distance) {
  constexpr int64_t kPerSide = kRelativeBiasBuckets / 2, kExact = kPerSide / 2;
  const int64_t side = distance > 0 ? kPerSide : 0, n = std::abs(distance);
  if (n < kExact) return side + n;
  // In float32 and in this order, because some distances are exactly at the border of a bucket.
  const float scale = static_cast<float>(std::log(static_cast<double>(kRelativeBiasSpan) / kExact));
  const float log = std::log(static_cast<float>(n) / static_cast<float>(kExact)) / scale;
  const auto bucket = kExact + static_cast<int64_t>(log * static_cast<float>(kPerSide - kExact));
  return side + std::min(bucket, kPerSide - 1);
}

std::vector<float> LoadRelativeBias(const WeightSource& weights, const std::string& name, int64_t num_heads,
                                    Shard shard) {
  const TensorView tensor = weights.Get(name, std::array{kRelativeBiasBuckets, num_heads});
  std::vector<float> values(static_cast<size_t>(kRelativeBiasBuckets * num_heads));
  kernels::ConvertToFloat(tensor.data.data(), tensor.dtype(), kRelativeBiasBuckets * num_heads, values.data());
  std::vector<float> bias;
  for (int64_t head = shard.begin; head < shard.begin + shard.count; ++head) {
    for (int64_t distance = -kRelativeBiasSpan; distance <= kRelativeBiasSpan; ++distance) {
      bias.push_back(values[static_cast<size_t>(RelativeBucket(distance) * num_heads + head)]);
    }
  }
  return bias;
}

std::vector<float> AlibiSlopes(int64_t num_heads) {
  const auto power = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(num_heads)));
  std::vector<float> slopes;
  // A power of two has the slopes 2^(-8 / n), 2^(-16 / n), ... Further heads have every second slope of twice as many.
  const auto slope = [&](int64_t i, int64_t heads) {
    return static_cast<float>(std::exp2(-8.0 * static_cast<double>(i + 1) / static_cast<double>(heads)));
  };
  for (int64_t i = 0; i < power; ++i) slopes.push_back(slope(i, power));
  for (int64_t i = 0; power + i < num_heads; ++i) slopes.push_back(slope(2 * i, 2 * power));
  return slopes;
}

std::vector<float> AlibiBias(int64_t num_heads, Shard shard, int64_t span) {
  const std::vector<float> slopes = AlibiSlopes(num_heads);
  std::vector<float> bias;
  bias.reserve(static_cast<size_t>(shard.count * (2 * span + 1)));
  for (int64_t head = shard.begin; head < shard.begin + shard.count; ++head) {
    for (int64_t distance = -span; distance <= span; ++distance) {
      bias.push_back(-slopes[static_cast<size_t>(head)] * static_cast<float>(std::abs(distance)));
    }
  }
  return bias;
}

}  // namespace vllm
