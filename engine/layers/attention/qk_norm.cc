#include "engine/layers/attention/qk_norm.h"

#include <array>
#include <cmath>
#include <numeric>
#include <span>

#include "engine/layers/column_gather.h"
#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

float Sum(const float* x, int64_t n) {
  // Independent partial sums, because a single chain of additions is slow.
  std::array<float, 16> sums{};
  const auto lanes = static_cast<int64_t>(sums.size());
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t lane = 0; lane < lanes; ++lane) sums[static_cast<size_t>(lane)] += x[i + lane];
  }
  for (int64_t lane = 0; i < n; ++i, ++lane) sums[static_cast<size_t>(lane)] += x[i];
  return std::accumulate(sums.begin(), sums.end(), 0.0f);
}

}  // namespace

QkNorm::QkNorm(const LoadContext& load, const std::string& prefix, const QkNormSpec& spec, int64_t head_dim,
               const HeadRange& queries, const HeadRange& keys)
    : step_(load.step),
      kind_(spec.kind),
      head_dim_(head_dim),
      queries_(queries),
      keys_(keys),
      eps_(static_cast<float>(spec.norm.eps)),
      subtracts_mean_(spec.norm.kind == NormSpec::Kind::kLayer) {
  const std::string q_name = prefix + spec.q_norm;
  const std::string k_name = prefix + spec.k_norm;
  const auto add = [&](const std::string& name) { norms_.emplace_back(load, name, head_dim, spec.norm); };
  const auto part = [&](const std::string& name, const HeadRange& heads) {
    return LoadFloats(load.weights, name, heads.total * head_dim,
                      {heads.shard.begin * head_dim, heads.shard.count * head_dim});
  };
  switch (kind_) {
    case QkNormKind::kNone:
      break;
    case QkNormKind::kHead:
      add(q_name);
      if (keys.total > 0) add(k_name);
      break;
    case QkNormKind::kEachHead:
      for (int64_t i = 0; i < queries.shard.count; ++i)
        add(q_name + ".norms." + std::to_string(queries.shard.begin + i));
      for (int64_t i = 0; i < keys.shard.count; ++i) add(k_name + ".norms." + std::to_string(keys.shard.begin + i));
      break;
    case QkNormKind::kWhole:
      q_weight_ = part(q_name + ".weight", queries);
      k_weight_ = part(k_name + ".weight", keys);
      if (!subtracts_mean_ || !spec.norm.has_bias) break;
      q_bias_ = part(q_name + ".bias", queries);
      k_bias_ = part(k_name + ".bias", keys);
      break;
  }
}

void QkNorm::Forward(float* heads, int64_t stride, int64_t num_rows, float* sums) const {
  if (kind_ == QkNormKind::kNone) return;
  if (kind_ == QkNormKind::kWhole) return ForwardWhole(heads, stride, num_rows, sums);
  const int64_t num_queries = queries_.shard.count;
  const int64_t num_heads = num_queries + keys_.shard.count;
  ForEachRow(step_, num_rows, num_heads * head_dim_, [&](int64_t row) {
    for (int64_t i = 0; i < num_heads; ++i) {
      float* head = heads + row * stride + i * head_dim_;
      const int64_t norm = kind_ == QkNormKind::kEachHead ? i : (i < num_queries ? 0 : 1);
      norms_[static_cast<size_t>(norm)].Row(head, head);
    }
  });
}

template <typename F>
void QkNorm::SumHeads(const float* heads, int64_t stride, int64_t num_rows, float* sums, const F& sum_of) const {
  const Shard& q = queries_.shard;
  const Shard& k = keys_.shard;
  ForEachRow(step_, num_rows, (q.count + k.count) * head_dim_, [&](int64_t row) {
    const float* head = heads + row * stride;
    float* const row_sums = sums + row * num_sums();
    for (int64_t i = 0; i < q.count; ++i, head += head_dim_) row_sums[q.begin + i] = sum_of(head);
    for (int64_t i = 0; i < k.count; ++i, head += head_dim_) row_sums[queries_.total + k.begin + i] = sum_of(head);
  });
  const std::array<Shard, 2> own = {{q, {queries_.total + k.begin, k.count}}};
  AllGather(step_, std::span(own).first(keys_.counts ? 2 : 1), num_rows, num_sums(), sums);
}

std::pair<float, float> QkNorm::Means(const float* sums) const {
  const float q = std::accumulate(sums, sums + queries_.total, 0.0f);
  const float k = std::accumulate(sums + queries_.total, sums + num_sums(), 0.0f);
  return {q / static_cast<float>(queries_.total * head_dim_), k / static_cast<float>(keys_.total * head_dim_)};
}

void QkNorm::ForwardWhole(float* heads, int64_t stride, int64_t num_rows, float* sums) const {
  const auto q_size = static_cast<int64_t>(q_weight_.size());
  const auto k_size = static_cast<int64_t>(k_weight_.size());
  const kernels::Kernels& kernels = *step_.kernels;
  if (subtracts_mean_) SubtractMeans(heads, stride, num_rows, sums);
  SumHeads(heads, stride, num_rows, sums, [&](const float* head) { return kernels.sum_of_squares(head, head_dim_); });
  ForEachRow(step_, num_rows, q_size + k_size, [&](int64_t row) {
    float* q = heads + row * stride;
    const auto [q_mean, k_mean] = Means(sums + row * num_sums());
    kernels.mul_scaled(q, q_weight_.data(), 1.0f / std::sqrt(q_mean + eps_), q_size, q);
    kernels.mul_scaled(q + q_size, k_weight_.data(), 1.0f / std::sqrt(k_mean + eps_), k_size, q + q_size);
    if (q_bias_.empty()) return;
    kernels.add(q, q_bias_.data(), q_size);
    kernels.add(q + q_size, k_bias_.data(), k_size);
  });
}

void QkNorm::SubtractMeans(float* heads, int64_t stride, int64_t num_rows, float* sums) const {
  const auto q_size = static_cast<int64_t>(q_weight_.size());
  const auto k_size = static_cast<int64_t>(k_weight_.size());
  SumHeads(heads, stride, num_rows, sums, [&](const float* head) { return Sum(head, head_dim_); });
  ForEachRow(step_, num_rows, q_size + k_size, [&](int64_t row) {
    float* q = heads + row * stride;
    const auto [q_mean, k_mean] = Means(sums + row * num_sums());
    for (int64_t i = 0; i < q_size; ++i) q[i] -= q_mean;
    for (int64_t i = q_size; i < q_size + k_size; ++i) q[i] -= k_mean;
  });
}

}  // namespace vllm
