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

ShortConv::ShortConv(const LoadContext& load, const ModelConfig& model, size_t layer, const std::string& prefix,
                     const ShortConvSpec& spec)
    : step_(load.step),
      layer_(layer),
      hidden_size_(model.hidden_size),
      channels_(ShardOf(model.hidden_size, load.step.rank(), load.step.world_size())),
      in_proj_(load, model, model.hidden_size,
               {{prefix + "in_proj", 3 * hidden_size_, channels_},
                {prefix + "in_proj", 3 * hidden_size_, {hidden_size_ + channels_.begin, channels_.count}},
                {prefix + "in_proj", 3 * hidden_size_, {2 * hidden_size_ + channels_.begin, channels_.count}}},
               spec.has_bias),
      conv_(load, {.name = prefix + "conv",
                   .total = model.hidden_size,
                   .parts = {channels_},
                   .num_taps = spec.num_taps,
                   .has_bias = spec.has_bias,
                   .activation = {}}),
      out_proj_(load, model, prefix + "out_proj", model.hidden_size, model.hidden_size, channels_, spec.has_bias) {}

void ShortConv::Reserve(int64_t max_tokens) const {
  in_proj_.Reserve(max_tokens);
  out_proj_.Reserve(max_tokens);
}

SequenceInputs ShortConv::Inputs(const RecurrentSequence& sequence, KVCache& cache, const float* rows) const {
  return SequenceInputs(sequence, layer_,
                        {.rows = rows + sequence.first_row * 3 * channels_.count,
                         .row_stride = 3 * channels_.count,
                         .width = channels_.count,
                         .window = cache.window(layer_, sequence.block_ids),
                         .num_taps = conv_.num_taps(),
                         .num_channels = channels_.count});
}

void ShortConv::Forward(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* x,
                        int64_t num_tokens, float* scratch, float* out, const int32_t* lora_slots) {
  const int64_t count = channels_.count;
  float* const rows = scratch;  // [num_tokens, 3, count]: B, which becomes B * x; C; x
  float* const mixed = rows + num_tokens * 3 * count;
  in_proj_.Forward(x, hidden_size_, num_tokens, rows, 3 * count, lora_slots);
  ForEachRow(step_, num_tokens, count, [&](int64_t row) {
    float* const b = rows + row * 3 * count;
    Multiply(b, b + 2 * count, count);
  });
  ForEachRow(step_, num_tokens, conv_.num_taps() * count, [&](int64_t row) {
    // Sequences are in the order of their rows, which are all rows of the step.
    const auto next = std::upper_bound(sequences.begin(), sequences.end(), row,
                                       [](int64_t r, const RecurrentSequence& s) { return r < s.first_row; });
    const RecurrentSequence& sequence = *(next - 1);
    const SequenceInputs inputs = Inputs(sequence, cache, rows);
    float* const y = mixed + row * count;
    conv_.Row(step_, inputs, sequence.num_accepted + row - sequence.first_row, 0, count, y);
    Multiply(y, rows + (row * 3 + 1) * count, count);
  });
  for (const RecurrentSequence& sequence : sequences) {
    conv_.SaveWindows(sequence, layer_, Inputs(sequence, cache, rows), cache);
    KeepDrafts(sequence, layer_, rows, 3 * count, count);
  }
  out_proj_.Forward(mixed, count, num_tokens, out, lora_slots);
}

}  // namespace vllm
