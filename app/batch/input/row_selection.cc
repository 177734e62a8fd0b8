#include "app/batch/input/row_selection.h"

#include <queue>
#include <string>

#include "app/cli/parse_value.h"
#include "engine/config/errors.h"
#include "engine/config/hash.h"

namespace vllm::app {
namespace {

// A bijection of the index for each seed, so no two rows have the same hash.
uint64_t SampleHash(uint64_t seed, int64_t index) {
  return MixBits(static_cast<uint64_t>(index) ^ MixBits(seed + kSplitMixGamma));
}

}  // namespace

Shard ParseShard(std::string_view text) {
  const size_t slash = text.find('/');
  Shard shard;
  bool is_valid = slash != std::string_view::npos;
  if (is_valid) {
    try {
      shard.index = ParseInteger(text.substr(0, slash));
      shard.count = ParseInteger(text.substr(slash + 1));
    } catch (const std::exception&) {
      is_valid = false;
    }
  }
  if (!is_valid || shard.count < 1 || shard.index < 0 || shard.index >= shard.count) {
    throw ConfigError("--shard: must be i/n with i from 0 to n-1 (" + std::string(text) + ")",
                      "--shard 0/4, 1/4, 2/4 and 3/4 together are all rows");
  }
  return shard;
}

void RowSelection::SetSample(int64_t count, int64_t num_rows, uint64_t seed) {
  seed_ = seed;
  if (count >= num_rows) return;
  std::priority_queue<uint64_t> smallest;
  for (int64_t index = 0; index < num_rows; ++index) {
    const uint64_t hash = SampleHash(seed, index);
    if (static_cast<int64_t>(smallest.size()) < count) {
      smallest.push(hash);
    } else if (count > 0 && hash < smallest.top()) {
      smallest.pop();
      smallest.push(hash);
    }
  }
  if (count <= 0) {
    limit_ = 0;
  } else {
    sample_bound_ = smallest.top();
  }
}

bool RowSelection::Selects(int64_t index) {
  if (IsComplete() || index % shard_.count != shard_.index) return false;
  if (sample_bound_ && SampleHash(seed_, index) > *sample_bound_) return false;
  ++num_selected_;
  return true;
}

}  // namespace vllm::app
