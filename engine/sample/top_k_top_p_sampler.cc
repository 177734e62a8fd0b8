#include "engine/sample/top_k_top_p_sampler.h"

#include <algorithm>
#include <functional>

#include "engine/sample/row_ops.h"

namespace vllm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();

bool MoreProbable(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id > b.id;
}

// Calls visit(logit, id) for every token whose logit is at least `min_logit`, in ascending order of id.
template <typename Visit>
void VisitAtLeast(float min_logit, std::span<const float> row, std::span<const float> block_max, Visit visit) {
  for (size_t b = 0; b < block_max.size(); ++b) {
    if (!(block_max[b] >= min_logit)) continue;
    size_t end = std::min((b + 1) * kernels::kRowBlock, row.size());
    for (size_t i = b * kernels::kRowBlock; i < end; ++i) {
      if (row[i] >= min_logit) visit(row[i], static_cast<int32_t>(i));
    }
  }
}

}  // namespace

TopKTopPSampler::TopKTopPSampler(size_t vocab_size, const kernels::RowKernels& kernels)
    : kernels_(&kernels), block_max_(NumRowBlocks(vocab_size)), block_sums_(NumRowBlocks(vocab_size)) {
  values_.reserve(vocab_size);
  candidates_.reserve(vocab_size);
  scratch_.reserve(vocab_size);
}

bool TopKTopPSampler::Load(std::span<const float> row) {
  row_ = row;
  bool valid = BlockMaxima(*kernels_, row, block_max_);
  max_ = -kInfinity;
  for (float value : block_max_) max_ = value > max_ ? value : max_;
  return valid;
}

int32_t TopKTopPSampler::ArgMax() const {
  size_t block = static_cast<size_t>(std::find(block_max_.begin(), block_max_.end(), max_) - block_max_.begin());
  size_t id = block * kernels::kRowBlock;
  while (row_[id] != max_) ++id;
  return static_cast<int32_t>(id);
}

float TopKTopPSampler::KthLargest(size_t k) {
  auto kth_value = [&] {
    auto kth = values_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(values_.begin(), kth, values_.end(), std::greater<float>());
    return *kth;
  };
  if (k <= block_max_.size()) {
    // Each of the k blocks with the largest maxima has a value >= the k-th largest maximum. The k-th largest value is
    // therefore >= that maximum too.
    values_.assign(block_max_.begin(), block_max_.end());
    float min_logit = kth_value();
    values_.clear();
    // A mask may leave fewer than k tokens.
    VisitAtLeast(std::max(min_logit, kLowest), row_, block_max_,
                 [&](float logit, int32_t) { values_.push_back(logit); });
    if (values_.size() < k) return -kInfinity;
  } else {
    values_.assign(row_.begin(), row_.end());
  }
  return kth_value();
}

void TopKTopPSampler::Gather(const Threshold& threshold) {
  candidates_.clear();
  VisitAtLeast(threshold.logit, row_, block_max_, [&](float logit, int32_t id) {
    if (threshold.Keeps(logit, id)) candidates_.push_back({logit, 0.0f, id});
  });
}

double TopKTopPSampler::ComputeWeights(float inverse_temperature) {
  double total = 0.0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = Weight(candidate.logit, max_, inverse_temperature);
    total += static_cast<double>(candidate.weight);
  }
  return total;
}

void TopKTopPSampler::Restrict(const Threshold& threshold) {
  std::erase_if(candidates_, [&](const Candidate& c) { return !threshold.Keeps(c.logit, c.id); });
}

double TopKTopPSampler::ComputeAllWeights(float inverse_temperature) {
  BlockWeightSums(*kernels_, row_, max_, inverse_temperature, block_sums_);
  double total = 0.0;
  for (double sum : block_sums_) total += sum;
  return total;
}

Threshold TopKTopPSampler::TopPOfCandidates(double top_p, double total) {
  scratch_.assign(candidates_.begin(), candidates_.end());
  return Nucleus(scratch_, top_p * total);
}

Threshold TopKTopPSampler::TopPOfRow(double top_p, double total, float inverse_temperature) {
  // Visits the tokens in levels of decreasing weight. The lower bound of each level's weights is 1/16 of the bound of
  // the level before. Most rows need only the first levels, whose tokens are in few blocks.
  constexpr float kLn16 = 2.77258872f;
  constexpr int kMaxLevel = 32;  // 16^-32 < e^-87, and Weight returns 0 below e^-87
  double target = top_p * total;
  double before = 0.0;
  float upper = kInfinity;
  for (int level = 1; level <= kMaxLevel; ++level) {
    float lower = max_ - kLn16 * static_cast<float>(level) / inverse_temperature;
    scratch_.clear();
    double mass = 0.0;
    VisitAtLeast(lower, row_, block_max_, [&](float logit, int32_t id) {
      if (!(logit < upper)) return;
      float weight = Weight(logit, max_, inverse_temperature);
      mass += static_cast<double>(weight);
      scratch_.push_back({logit, weight, id});
    });
    if (before + mass >= target) return Nucleus(scratch_, target - before);
    before += mass;
    upper = lower;
  }
  return {};  // keep all: top_p is so close to 1 that rounding keeps the sum below the target
}

Threshold TopKTopPSampler::Nucleus(std::span<Candidate> items, double target) {
  constexpr size_t kSortBelow = 64;
  double before = 0.0;  // sum of the weights before items[low]
  size_t low = 0;
  size_t high = items.size();
  while (high - low > kSortBelow) {
    size_t middle = low + (high - low) / 2;
    auto begin = items.begin();
    std::nth_element(begin + static_cast<std::ptrdiff_t>(low), begin + static_cast<std::ptrdiff_t>(middle),
                     begin + static_cast<std::ptrdiff_t>(high), MoreProbable);
    double sum = 0.0;
    for (size_t i = low; i < middle; ++i) sum += static_cast<double>(items[i].weight);
    if (before + sum < target) {
      before += sum;
      low = middle;
    } else {
      high = middle;
    }
  }
  std::sort(items.begin() + static_cast<std::ptrdiff_t>(low), items.begin() + static_cast<std::ptrdiff_t>(high),
            MoreProbable);
  size_t last = low;
  for (size_t i = low; i < high && before < target; ++i) {
    last = i;
    before += static_cast<double>(items[i].weight);
  }
  return {items[last].logit, items[last].id};
}

}  // namespace vllm
