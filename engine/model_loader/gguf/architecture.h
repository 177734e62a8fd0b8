// GgufArchitecture: what a GGUF architecture is in Hugging Face's terms: the class that computes it, the names of its
// tensors, and the few facts that its files do not carry. Pure values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace vllm {

// "blk.N.<gguf>.weight" is "<prefix>N.<hf>.weight" of the Hugging Face checkpoint, ".bias" likewise.
struct GgufTensorName {
  std::string_view gguf;
  std::string_view hf;
};

struct GgufArchitecture {
  std::string_view name;          // general.architecture
  std::string_view architecture;  // "LlamaForCausalLM"
  std::string_view model_type;    // as config.json would say
  std::string_view hidden_act;
  bool layer_norm = false;             // LayerNorm with its epsilon, not RMSNorm
  bool interleaved_rope = false;       // q and k rows are stored as TensorView::interleaved_head_dim says
  int64_t sliding_window_pattern = 0;  // each n-th layer sees everything; 0: no layer does
  int64_t default_sliding_window = 0;
  std::string_view layer_prefix;          // "model.layers."
  std::span<const GgufTensorName> outer;  // whole names without ".weight"
  // "{}" stands for the index in a stack: of an expert's matrix, or of a head's norm.
  std::span<const GgufTensorName> layer;
  std::span<const GgufTensorName> experts;
};

// The family of general.architecture; "llama" with experts is Mixtral. Null when it is not known.
const GgufArchitecture* FindGgufArchitecture(std::string_view architecture, bool has_experts);
// "gemma, gemma2, ..."
std::string KnownGgufFamilies();

}  // namespace vllm
