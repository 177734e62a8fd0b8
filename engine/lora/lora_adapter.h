// LoRAAdapter: a loaded LoRA adapter (arXiv 2106.09685): for some linear layers of a base model, two thin matrices
// whose product is added to the layer's weight. Loaded from a PEFT directory or a GGUF file. Shared by the
// configuration and the workers. Immutable; any thread may read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/weights.h"

namespace vllm {

// The adapter's part of one module. A linear layer y = W x becomes y = W x + scale * (B (A x) + b_bias). An embedding
// y = W[token] becomes y = W[token] + scale * B A[:, token].
struct LoRAModule {
  enum class Kind : uint8_t { kLinear, kEmbedding };
  Kind kind = Kind::kLinear;
  std::string name;         // see CanonicalModuleName
  std::string tensor_name;  // of A, or of the bias if there is no A, in the file
  int64_t rank = 0;         // 0: the file has only a bias for this module
  double scale = 1.0;
  TensorView a;                      // [rank, in_features], or [rank, vocab_size] of an embedding
  TensorView b;                      // [out_features, rank]
  std::optional<TensorView> b_bias;  // [out_features], peft's lora_bias
  std::optional<TensorView> bias;    // [out_features], replaces the bias of the base layer
  // [out_features] The magnitudes m of DoRA (arXiv 2402.09353): row n of the weight W + scale * B A is scaled to the
  // norm m[n]. A bias of the base layer is not scaled.
  std::optional<TensorView> magnitude;
  // A copy of the weight of the base layer, which PEFT saves with adapted embeddings and output projections.
  std::optional<TensorView> base_weight;
};

struct LoRAAdapter {
  std::string name;                        // by which requests choose it
  std::string path;                        // for messages
  std::string digest;                      // 16 bytes that change with the contents of the adapter's files
  std::vector<LoRAModule> modules;         // sorted by name; the pairs of name and kind are unique
  std::shared_ptr<const void> keep_alive;  // owns the tensors
};

// Returns the index of the last adapter with this name, or -1. An adapter that is added while the engine runs replaces
// an earlier one with the same name.
int32_t SlotOf(std::span<const std::shared_ptr<const LoRAAdapter>> adapters, std::string_view name);
// Returns the adapters that SlotOf finds, in the order in which they were added.
std::vector<std::shared_ptr<const LoRAAdapter>> NamedAdapters(
    std::span<const std::shared_ptr<const LoRAAdapter>> adapters);
// Returns their names for a message: "sql, poems", or "none".
std::string AdapterNames(std::span<const std::shared_ptr<const LoRAAdapter>> adapters);

// Returns the name of a module without the prefixes in which PEFT, transformers and published checkpoints differ:
// "layers.0.self_attn.q_proj" for "base_model.model.model.layers.0.self_attn.q_proj" and for
// "language_model.model.layers.0.self_attn.q_proj".
std::string CanonicalModuleName(std::string_view name);

// Returns a digest of the contents of the adapter's configuration and weights.
std::string LoRADigest(std::string_view config, const MappedFile& weights);

// Sorts the modules of a new adapter. Throws ModelError if two of them have the same name and kind, or if there are
// none.
void SortModules(LoRAAdapter& adapter);

}  // namespace vllm
