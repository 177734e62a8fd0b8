// GgufArchitecture: maps a GGUF architecture to Hugging Face's model class and tensor names, and adds some settings
// that GGUF files may lack. Constants and pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/model_loader/gguf/hybrid.h"

namespace vllm {

// In a layer, "blk.N.<gguf>.weight" is "<layer_prefix>N.<hf>.weight" in the Hugging Face checkpoint. Biases and tensors
// without a suffix map the same way.
struct GgufTensorName {
  std::string_view gguf;
  std::string_view hf;
};

struct GgufArchitecture {
  std::string_view name;             // general.architecture
  std::string_view hf_architecture;  // "LlamaForCausalLM"
  std::string_view model_type;       // model_type of config.json
  std::string_view hidden_act;
  bool layer_norm = false;        // LayerNorm and its epsilon key instead of RMSNorm
  bool linear_attention = false;  // some layers have Gated DeltaNet instead of attention
  GgufHybrid hybrid = GgufHybrid::kNone;
  bool expert_biases = false;          // experts may have biases
  bool interleaved_rope = false;       // q and k rows are interleaved; see TensorView::interleaved_head_dim
  int64_t sliding_window_pattern = 0;  // default with a window: every n-th layer has full attention; 0: no layer has
  int64_t default_sliding_window = 0;
  std::string_view layer_prefix;          // "model.layers."
  std::span<const GgufTensorName> outer;  // tensors outside the layers; full names without ".weight"
  // In `hf`, "{}" stands for the expert index or, for norms, the head index. An entry whose GGUF name ends with
  // ".weight" or ".scale" has the full names of both sides.
  std::span<const GgufTensorName> layer;
  std::span<const GgufTensorName> experts;
};

// Returns the entry for a value of general.architecture, or null if it is unknown. "llama" with experts is Mixtral.
const GgufArchitecture* FindGgufArchitecture(std::string_view architecture, bool has_experts);
// Returns all entries. Those of the same name follow each other.
std::span<const GgufArchitecture> GgufArchitectures();

}  // namespace vllm
