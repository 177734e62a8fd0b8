// TopKTopPSampler: finds the most probable tokens of one row without sorting the vocabulary. The maxima of small blocks
// show which blocks to search. Contains scratch of vocabulary size and borrows the loaded row. Allocates nothing after
// construction. Owned by a Sampler; used only on the thread that calls the Sampler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kernels/row_kernels.h"

namespace vllm {

struct Candidate {
  float logit;
  float weight;  // exp((logit - max) / temperature)
  int32_t id;
};

// A lower bound in the order (logit, id). Tokens below it are dropped. If logits are equal, the tokens with larger ids
// are kept, because vLLM sorts in ascending order with a stable sort and drops tokens from the front.
struct Threshold {
  float logit = -std::numeric_limits<float>::infinity();
  int32_t id = 0;

  bool Keeps(float other_logit, int32_t other_id) const {
    return other_logit > logit || (other_logit == logit && other_id >= id);
  }
};

class TopKTopPSampler {
 public:
  TopKTopPSampler(size_t vocab_size, const kernels::RowKernels& kernels);

  // Sets the row that later calls work on; borrows it. Returns false if it contains NaN or +inf.
  bool Load(std::span<const float> row);
  float max() const { return max_; }

  // Returns the first token with the largest logit.
  int32_t ArgMax() const;
  // Returns the k-th largest logit. REQUIRES: 1 <= k <= vocab_size.
  float KthLargest(size_t k);
  // Sets candidates() to the tokens that `threshold` keeps, in ascending order of id. Their weights are not set yet.
  void Gather(const Threshold& threshold);
  // Sets the candidates' weights and returns their sum, added in ascending order of id.
  double ComputeWeights(float inverse_temperature);
  // Removes the candidates that `threshold` does not keep.
  void Restrict(const Threshold& threshold);

  // Sets block_sums() to the sum of the weights in each block of the row. Returns their total, added in order.
  double ComputeAllWeights(float inverse_temperature);
  std::span<const double> block_sums() const { return block_sums_; }

  // Both return the threshold that keeps the smallest set of most probable tokens whose weights add up to at least
  // top_p times `total`, either among the candidates or in the whole row. REQUIRES: ComputeWeights or
  // ComputeAllWeights, respectively, was called and returned `total`.
  Threshold TopPOfCandidates(double top_p, double total);
  Threshold TopPOfRow(double top_p, double total, float inverse_temperature);

  std::vector<Candidate>& candidates() { return candidates_; }
  const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  // Goes through `items` from the most to the least probable one, and returns the last item for which the sum of the
  // weights before it is below `target`. Reorders `items`.
  static Threshold Nucleus(std::span<Candidate> items, double target);

  const kernels::RowKernels* kernels_;
  std::span<const float> row_;
  float max_ = 0.0f;
  std::vector<float> block_max_;
  std::vector<double> block_sums_;
  std::vector<float> values_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> scratch_;
};

}  // namespace vllm
