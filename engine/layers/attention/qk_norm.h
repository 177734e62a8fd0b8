// QkNorm: the norm that some families put on queries and keys before they are rotated: one weight for all heads, a
// weight for each head, or one norm over all heads together, whose sums of squares then cross the ranks. Made at load,
// then used by the rank's thread.
#pragma once

#include <cstdint>
#include <string>
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
};

// The heads of one side, queries or keys, on this rank.
struct HeadRange {
  int64_t total = 0;
  Shard shard;
  // Ranks that hold a copy of these heads: only the first counts them in a sum over ranks.
  bool counts = true;
};

class QkNorm {
 public:
  QkNorm(const LoadContext& load, const std::string& prefix, const QkNormSpec& spec, int64_t head_dim,
         const HeadRange& queries, const HeadRange& keys);

  // heads: [num_rows, stride], a row the rank's query heads and then its key heads. sums: [num_rows, 2] of scratch,
  // used by kWhole only.
  void Forward(float* heads, int64_t stride, int64_t num_rows, float* sums) const;

 private:
  void ForwardWhole(float* heads, int64_t stride, int64_t num_rows, float* sums) const;

  const StepContext& step_;
  QkNormKind kind_;
  int64_t head_dim_;
  HeadRange queries_, keys_;
  float eps_;
  std::vector<Norm> norms_;                 // kHead: queries', keys'; kEachHead: one for each head of a row
  std::vector<float> q_weight_, k_weight_;  // kWhole: the rank's parts
};

}  // namespace vllm
