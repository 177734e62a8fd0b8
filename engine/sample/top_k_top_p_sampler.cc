#include "engine/sample/top_k_top_p_sampler.h"

#include <algorithm>
#include <functional>

#include "engine/sample/row_ops.h"

namespace vllm {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool MoreProbable(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id > b.id;
}

// Calls visit(logit, id) for every token of at least `logit`, in the order of ids.
template <typename Visit>
void VisitAtLeast(float logit, std::span<const float> row, std::span<const float> block_max, Visit visit) {
  for (size_t b = 0; b < block_max.size(); ++b) {
    if (!(block_max[b] >= logit)) continue;
    size_t end = std::min((b + 1) * kRowBlock, row.size());
    for (size_t i = b * kRowBlock; i < end; ++i) {
      if (row[i] >= logit) visit(row[i], static_cast<int32_t>(i));
    }
  }
}

}  // namespace

TopKTopPSampler::TopKTopPSampler(size_t vocab_size, const RowKernels& kernels)
    : kernels_(&kernels), block_max_(NumRowBlocks(vocab_size)), block_sums_(NumRowBlocks(vocab_size)) {
  values_.reserve(vocab_size);
  candidates_.reserve(vocab_size);
  work_.reserve(vocab_size);
}

bool TopKTopPSampler::Load(std::span<const float> row) {
  row_ = row;
  bool good = BlockMaxima(*kernels_, row, block_max_);
  max_ = -kInfinity;
  for (float value : block_max_) max_ = value > max_ ? value : max_;
  return good;
}

int32_t TopKTopPSampler::ArgMax() const {
  size_t block = static_cast<size_t>(std::find(block_max_.begin(), block_max_.end(), max_) - block_max_.begin());
  size_t id = block * kRowBlock;
  while (row_[id] != max_) ++id;
  return static_cast<int32_t>(id);
}

float TopKTopPSampler::KthLargest(size_t k) {
  auto nth = [&] {
    auto at = values_.begin() + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(values_.begin(), at, values_.end(), std::greater<float>());
    return *at;
  };
  if (k <= block_max_.size()) {
    // Each of the k blocks with the largest maxima holds a value that is at least the k-th maximum, so the k-th value
    // is.
    values_.assign(block_max_.begin(), block_max_.end());
    float bound = nth();
    values_.clear();
    VisitAtLeast(bound, row_, block_max_, [&](float logit, int32_t) { values_.push_back(logit); });
  } else {
    values_.assign(row_.begin(), row_.end());
  }
  return nth();
}

void TopKTopPSampler::Gather(const Threshold& cut) {
  candidates_.clear();
  VisitAtLeast(cut.logit, row_, block_max_, [&](float logit, int32_t id) {
    if (cut.Keeps(logit, id)) candidates_.push_back({logit, 0.0f, id});
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

void TopKTopPSampler::Restrict(const Threshold& cut) {
  std::erase_if(candidates_, [&](const Candidate& c) { return !cut.Keeps(c.logit, c.id); });
}

double TopKTopPSampler::ComputeAllWeights(float inverse_temperature) {
  BlockWeightSums(*kernels_, row_, max_, inverse_temperature, block_sums_);
  double total = 0.0;
  for (double sum : block_sums_) total += sum;
  return total;
}

Threshold TopKTopPSampler::TopPOfCandidates(double top_p, double total) {
  work_.assign(candidates_.begin(), candidates_.end());
  return Nucleus(work_, top_p * total);
}

Threshold TopKTopPSampler::TopPOfRow(double top_p, double total, float inverse_temperature) {
  // Levels of falling weight, each a sixteenth of the one above: most rows need the first few, which are in few blocks.
  constexpr float kLn16 = 2.77258872f;
  constexpr int kMaxLevel = 32;  // 16^-32 < e^-87, below which weights are 0
  double target = top_p * total;
  double before = 0.0;
  float upper = kInfinity;
  for (int level = 1; level <= kMaxLevel; ++level) {
    float lower = max_ - kLn16 * static_cast<float>(level) / inverse_temperature;
    work_.clear();
    double mass = 0.0;
    VisitAtLeast(lower, row_, block_max_, [&](float logit, int32_t id) {
      if (!(logit < upper)) return;
      float weight = Weight(logit, max_, inverse_temperature);
      mass += static_cast<double>(weight);
      work_.push_back({logit, weight, id});
    });
    if (before + mass >= target) return Nucleus(work_, target - before);
    before += mass;
    upper = lower;
  }
  return {};  // top_p so near to 1 that rounding keeps the sum below it
}

Threshold TopKTopPSampler::Nucleus(std::span<Candidate> items, double target) {
  constexpr size_t kSortBelow = 64;
  double before = 0.0;  // the weight of everything in front of items[low]
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
