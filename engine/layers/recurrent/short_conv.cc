#include "engine/layers/recurrent/short_conv.h"

#include <algorithm>

#include "engine/layers/for_each_row.h"

namespace vllm {

namespace {

// x[i] *= y[i]
void Multiply(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] *= y[i];
}

}  // namespace

ConvMixer::Options ShortConv::MixerOptions(const LoadContext& load, const ModelConfig& model, const std::string& prefix,
                                           const ShortConvSpec& spec) {
  const int64_t size = model.hidden_size;
  const std::vector<Shard> shards = ShardsOfRows(size, load.step.world_size());
  const Shard channels = shards[static_cast<size_t>(load.step.rank())];
  Options options;
  options.in_proj = SplitRows(load.step, [&](int rank, int world_size) {
    const Shard own = ShardOfRows(size, rank, world_size);
    std::vector<OutputSlice> slices;
    for (const int64_t part : {int64_t{0}, size, 2 * size}) {
      slices.push_back({prefix + "in_proj", 3 * size, {part + own.begin, own.count}});
    }
    return slices;
  });
  options.in_bias = spec.has_bias;
  options.conv = {.name = prefix + "conv",
                  .total = size,
                  .parts = {channels},
                  .num_taps = spec.num_taps,
                  .has_bias = spec.has_bias,
                  .activation = {}};
  options.num_inputs = channels.count;
  options.out_proj = prefix + "out_proj";
  options.inner = shards;
  options.out_bias = spec.has_bias;
  return options;
}

ShortConv::ShortConv(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
                     const ShortConvSpec& spec)
    : ConvMixer(load, model, layer, MixerOptions(load, model, prefix, spec)) {}

void ShortConv::Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x,
                        int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) {
  const int64_t count = inner();
  float* const rows = scratch;  // [num_tokens, 3, count]: B, which becomes B * x; C; x
  float* const mixed = rows + num_tokens * 3 * count;
  ProjectIn(x, num_tokens, rows, lora_slots);
  ForEachRow(step(), num_tokens, count, [&](int64_t row) {
    float* const b = rows + row * 3 * count;
    Multiply(b, b + 2 * count, count);
  });
  ForEachRow(step(), num_tokens, conv().num_taps() * count, [&](int64_t row) {
    // Sequences are in the order of their rows, which are all rows of the step.
    const auto next = std::upper_bound(sequences.begin(), sequences.end(), row,
                                       [](int64_t r, const RecurrentSequence& s) { return r < s.first_row; });
    const RecurrentSequence& sequence = *(next - 1);
    const SequenceInputs inputs = Inputs(sequence, cache, rows);
    float* const y = mixed + row * count;
    conv().Row(step(), inputs, sequence.num_accepted + row - sequence.first_row, 0, count, y);
    Multiply(y, rows + (row * 3 + 1) * count, count);
  });
  SaveInputs(sequences, cache, rows);
  ProjectOut(mixed, num_tokens, out, lora_slots);
}

}  // namespace vllm
