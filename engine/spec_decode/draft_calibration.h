// DraftCalibration: turns a proposer's estimates of how probably drafts are accepted into probabilities, from how often
// such drafts were accepted so far. Owned by the Speculator; engine thread only.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace vllm {

class DraftCalibration {
 public:
  // The results of one request's drafts, for weak, medium and strong estimates.
  struct RequestRecord {
    struct Class {
      double num_expected = 0;  // sum of the calibrated probabilities of the drafts that were compared
      double num_accepted = 0;
    };
    std::array<Class, 3> classes;
  };

  // Returns the probability that a draft with this estimate is accepted, if all before it are.
  double Probability(double estimate, const RequestRecord& record) const;

  // Adds the result of verifying drafts with these estimates, the first num_accepted of which were accepted.
  void Add(std::span<const float> estimates, size_t num_accepted, RequestRecord& record);

  // Lets the request's record count less, if drafts were proposed for it and none was verified. Otherwise a request
  // whose drafts failed would never be tried again.
  static void Forget(RequestRecord& record);

 private:
  static constexpr size_t kNumBuckets = 32;  // of estimates, equally wide
  struct Bucket {
    double num_compared = 0;
    double num_accepted = 0;
  };
  static size_t BucketOf(double estimate);
  static size_t ClassOf(double estimate);
  double GlobalProbability(double estimate) const;

  std::array<Bucket, kNumBuckets> buckets_{};
};

}  // namespace vllm
