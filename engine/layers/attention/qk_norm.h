// QkNorm: the norm that some families apply to queries and keys, most of them before rotation. kHead normalizes each
// head, with one weight vector for all query heads and one for all key heads. kEachHead normalizes each head with a
// weight vector for that head. kWhole normalizes all query heads together and all key heads together, including those
// of other ranks. All kinds may be RMS norms or layer norms. Owned by a DecoderAttention. Built at load, then used by
// the rank's thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/layers/load_context.h"
#include "engine/layers/norm.h"

namespace vllm {

enum class QkNormKind : uint8_t { kNone, kHead, kEachHead, kWhole };

struct QkNormSpec {
  QkNormKind kind = QkNormKind::kNone;
  std::string q_norm = "q_norm";
  std::string k_norm = "k_norm";
  NormSpec norm;
  bool after_rotation = false;
};

// The query heads or the key heads of this rank.
struct HeadRange {
  int64_t total = 0;
  Shard shard;
  // False if these heads are copies of another rank's heads, which that rank sends to the others.
  bool counts = true;
};

class QkNorm {
 public:
  // With kHead, `keys` may be empty: another layer has stored the keys.
  QkNorm(const LoadContext& load, const std::string& prefix, const QkNormSpec& spec, int64_t head_dim,
         const HeadRange& queries, const HeadRange& keys);

  // Number of floats per row in the scratch of Forward.
  int64_t num_sums() const { return kind_ == QkNormKind::kWhole ? queries_.total + keys_.total : 0; }
  // heads: [num_rows, stride]; each row has the rank's query heads, then its key heads. sums: scratch of [num_rows,
  // num_sums()].
  void Forward(float* heads, int64_t stride, int64_t num_rows, float* sums) const;

 private:
  void ForwardWhole(float* heads, int64_t stride, int64_t num_rows, float* sums) const;
  // Fills sums, [num_rows, num_sums()], with sum_of(head) of all query heads, then of all key heads of all ranks.
  template <typename F>
  void SumHeads(const float* heads, int64_t stride, int64_t num_rows, float* sums, const F& sum_of) const;
  // Returns the sums of a row divided by the number of elements: of the query heads, and of the key heads. Adds in
  // ascending order of heads, for any number of ranks.
  std::pair<float, float> Means(const float* sums) const;
  // Subtracts the mean of all query heads from each query head, and the same for the keys.
  void SubtractMeans(float* heads, int64_t stride, int64_t num_rows, float* sums) const;

  const StepContext& step_;
  QkNormKind kind_;
  int64_t head_dim_;
  HeadRange queries_, keys_;
  float eps_;
  std::vector<Norm> norms_;                 // kHead: one for queries, one for keys; kEachHead: one per head
  std::vector<float> q_weight_, k_weight_;  // kWhole: the weights of the rank's heads
  std::vector<float> q_bias_, k_bias_;      // kWhole: their biases; empty: none
  bool subtracts_mean_;                     // kWhole: it is a layer norm
};

}  // namespace vllm
