#include "engine/spec_decode/step_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace vllm {
namespace {

constexpr int64_t kNumExact = 64;
// Without a measurement, each additional row is assumed to cost this share of a step.
constexpr double kAssumedRowCost = 0.04;
// A step longer than this times the mean says more about other programs than about its rows.
constexpr double kMaxRatio = 1.5;
// An entry with the weight w loses half of it during w times as many steps, and counts while its weight is at least
// kMinWeight.
constexpr double kHalfLife = 16;
constexpr double kMinWeight = 0.25;
constexpr double kFirstWeight = 0.5;

}  // namespace

size_t StepCost::IndexOf(int64_t num_rows) {
  if (num_rows < kNumExact) return static_cast<size_t>(num_rows);
  // Eight entries for each power of two.
  const int shift = std::bit_width(static_cast<uint64_t>(num_rows)) - 4;
  return static_cast<size_t>(kNumExact + (shift - 3) * 8 + (num_rows >> shift) - 8);
}

int64_t StepCost::RowsOf(size_t index) {
  const auto i = static_cast<int64_t>(index);
  if (i < kNumExact) return i;
  return ((i - kNumExact) % 8 + 8) << ((i - kNumExact) / 8 + 3);
}

void StepCost::Add(int64_t num_rows, double seconds) {
  const size_t index = IndexOf(num_rows);
  if (entries_.size() <= index) entries_.resize(index + 1);
  Entry& entry = entries_[index];
  ++num_added_;
  if (entry.weight > 0) seconds = std::min(seconds, kMaxRatio * entry.seconds);
  // The first step with this many rows also touches new memory, so it counts less.
  entry.weight = entry.weight > 0 ? std::min(entry.weight + 1, kMaxWeight) : kFirstWeight;
  entry.seconds += (seconds - entry.seconds) * (entry.weight > kFirstWeight ? 1 / entry.weight : 1);
  entry.last = num_added_;
  is_current_ = false;
}

void StepCost::MakeCurve() {
  is_current_ = true;
  curve_.clear();
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    if (entry.weight == 0) continue;
    const double age = static_cast<double>(num_added_ - entry.last);
    const double weight = entry.weight * std::exp2(-age / (kHalfLife * entry.weight));
    if (weight < kMinWeight) continue;
    curve_.push_back({static_cast<double>(RowsOf(i)), entry.seconds, weight});
  }
  // Isotonic regression: neighbors in the wrong order get their common mean.
  for (size_t i = 1; i < curve_.size(); ++i) {
    double sum = curve_[i].weight * curve_[i].seconds;
    double weight = curve_[i].weight;
    size_t begin = i;
    while (begin > 0 && curve_[begin - 1].seconds > sum / weight) {
      --begin;
      sum += curve_[begin].weight * curve_[begin].seconds;
      weight += curve_[begin].weight;
    }
    if (begin == i) continue;
    for (size_t j = begin; j <= i; ++j) curve_[j].seconds = sum / weight;
  }
}

double StepCost::Estimate(int64_t num_rows) {
  if (!is_current_) MakeCurve();
  if (curve_.empty()) return 0;
  const auto rows = static_cast<double>(num_rows);
  const auto above =
      std::find_if(curve_.begin(), curve_.end(), [rows](const Point& point) { return point.rows >= rows; });
  if (above == curve_.begin()) return above->seconds;
  const Point& below = *(above - 1);
  if (above == curve_.end()) return below.seconds * (1 + kAssumedRowCost * (rows - below.rows));
  return below.seconds + (above->seconds - below.seconds) * (rows - below.rows) / (above->rows - below.rows);
}

}  // namespace vllm
