#include "engine/layers/recurrent/conv_mixer.h"

namespace vllm {

ConvMixer::ConvMixer(const LoadContext& load, const ModelConfig& model, size_t layer, const Options& options)
    : step_(load.step),
      layer_(layer),
      hidden_size_(model.hidden_size),
      num_inputs_(options.num_inputs),
      inner_(options.inner[static_cast<size_t>(load.step.rank())].count),
      in_proj_(load, model, model.hidden_size, options.in_proj, options.in_bias),
      conv_(load, options.conv),
      out_proj_(load, model, options.out_proj, model.hidden_size, options.inner, options.out_bias) {}

void ConvMixer::Reserve(int64_t max_tokens) const {
  in_proj_.Reserve(max_tokens);
  out_proj_.Reserve(max_tokens);
}

SequenceInputs ConvMixer::Inputs(const RecurrentSequence& sequence, KVCache& cache, const float* rows) const {
  return SequenceInputs(sequence, layer_,
                        {.rows = rows + sequence.first_row * row_floats(),
                         .row_stride = row_floats(),
                         .width = num_inputs_,
                         .window = cache.window(layer_, sequence.block_ids),
                         .num_taps = conv_.num_taps(),
                         .num_channels = conv_.num_channels()});
}

void ConvMixer::SaveInputs(const std::vector<RecurrentSequence>& sequences, KVCache& cache, const float* rows) const {
  for (const RecurrentSequence& sequence : sequences) {
    conv_.SaveWindows(sequence, layer_, Inputs(sequence, cache, rows), cache);
    KeepDrafts(sequence, layer_, rows, row_floats(), num_inputs_);
  }
}

}  // namespace vllm
