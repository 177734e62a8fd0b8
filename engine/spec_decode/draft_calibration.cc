#include "engine/spec_decode/draft_calibration.h"

#include <algorithm>

namespace vllm {
namespace {

// Old results lose this share of their weight with each new one.
constexpr double kBucketDecay = 1.0 / 256;
constexpr double kRecordDecay = 1.0 / 16;
constexpr double kForgetShare = 1.0 / 64;
// The estimate, or the factor 1, counts as much as this many results.
constexpr double kBucketPrior = 4;
constexpr double kRecordPrior = 2;
// The limits of the classes of estimates. Below the first is little more than a guess, such as the successor of one
// token.
constexpr double kWeak = 0.5;
constexpr double kStrong = 0.85;

}  // namespace

size_t DraftCalibration::BucketOf(double estimate) {
  const auto bucket = static_cast<size_t>(std::clamp(estimate, 0.0, 1.0) * static_cast<double>(kNumBuckets));
  return std::min(bucket, kNumBuckets - 1);
}

size_t DraftCalibration::ClassOf(double estimate) {
  if (estimate < kWeak) return 0;
  return estimate < kStrong ? 1 : 2;
}

double DraftCalibration::GlobalProbability(double estimate) const {
  const Bucket& bucket = buckets_[BucketOf(estimate)];
  return (bucket.num_accepted + kBucketPrior * std::clamp(estimate, 0.0, 1.0)) / (bucket.num_compared + kBucketPrior);
}

double DraftCalibration::Probability(double estimate, const RequestRecord& record) const {
  const RequestRecord::Class& results = record.classes[ClassOf(estimate)];
  const double factor = (results.num_accepted + kRecordPrior) / (results.num_expected + kRecordPrior);
  return std::min(1.0, GlobalProbability(estimate) * factor);
}

void DraftCalibration::Add(std::span<const float> estimates, size_t num_accepted, RequestRecord& record) {
  // The drafts after the first that is rejected were not compared.
  const size_t num_compared = std::min(estimates.size(), num_accepted + 1);
  for (size_t i = 0; i < num_compared; ++i) {
    const double estimate = static_cast<double>(estimates[i]);
    const double result = i < num_accepted ? 1.0 : 0.0;
    RequestRecord::Class& results = record.classes[ClassOf(estimate)];
    results.num_expected += GlobalProbability(estimate) - kRecordDecay * results.num_expected;
    results.num_accepted += result - kRecordDecay * results.num_accepted;
    Bucket& bucket = buckets_[BucketOf(estimate)];
    bucket.num_compared += 1 - kBucketDecay * bucket.num_compared;
    bucket.num_accepted += result - kBucketDecay * bucket.num_accepted;
  }
}

void DraftCalibration::Forget(RequestRecord& record) {
  for (RequestRecord::Class& results : record.classes) {
    results.num_expected -= kForgetShare * results.num_expected;
    results.num_accepted -= kForgetShare * results.num_accepted;
  }
}

}  // namespace vllm
