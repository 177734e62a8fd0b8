// TopKTopPSampler: the most probable tokens of one row, found without sorting the vocabulary: the maxima of small
// blocks tell which blocks need to be looked into. Holds scratch of the vocabulary's size and borrows the loaded row;
// one a Sampler, its thread only. Allocates nothing after construction.
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

// The end of an order by (logit, id): a token is kept when it is not below. Among equal logits the greater ids are
// kept, as they are where vLLM's ascending stable sort is cut from below.
struct Threshold {
  float logit = -std::numeric_limits<float>::infinity();
  int32_t id = 0;

  bool Keeps(float other_logit, int32_t other_id) const {
    return other_logit > logit || (other_logit == logit && other_id >= id);
  }
};

class TopKTopPSampler {
 public:
  TopKTopPSampler(size_t vocab_size, const RowKernels& kernels);

  // Takes the row for the calls that follow. Returns false when it holds NaN or +inf.
  bool Load(std::span<const float> row);
  float max() const { return max_; }

  // The first token of the largest logit.
  int32_t ArgMax() const;
  // REQUIRES: 1 <= k <= vocabulary.
  float KthLargest(size_t k);
  // Fills candidates() with the tokens that `cut` keeps, in the order of their ids, without weights.
  void Gather(const Threshold& cut);
  // Sets the candidates' weights and returns their sum in that order.
  double ComputeWeights(float inverse_temperature);
  // Takes what the cut does not keep out of the candidates.
  void Restrict(const Threshold& cut);

  // The weights of the whole row: block sums, added up in order.
  double ComputeAllWeights(float inverse_temperature);
  std::span<const double> block_sums() const { return block_sums_; }

  // The smallest set of most probable tokens whose weights reach top_p * total, out of the candidates or out of the
  // whole row. REQUIRES: ComputeWeights or ComputeAllWeights was called and returned `total`.
  Threshold TopPOfCandidates(double top_p, double total);
  Threshold TopPOfRow(double top_p, double total, float inverse_temperature);

  std::vector<Candidate>& candidates() { return candidates_; }
  const std::vector<Candidate>& candidates() const { return candidates_; }

 private:
  // The last token in falling order for which the weights before it are below `target`. Reorders `items`.
  static Threshold Nucleus(std::span<Candidate> items, double target);

  const RowKernels* kernels_;
  std::span<const float> row_;
  float max_ = 0.0f;
  std::vector<float> block_max_;
  std::vector<double> block_sums_;
  std::vector<float> values_;
  std::vector<Candidate> candidates_;
  std::vector<Candidate> work_;
};

}  // namespace vllm
