// PeftConfig: adapter_config.json of a LoRA adapter that PEFT has saved (peft tuners/lora/config.py). Each field that
// changes results is read or rejected by name. The tensors of the file decide which modules are adapted, so fields that
// only select modules (target_modules, exclude_modules, layers_to_transform, layers_pattern) are not read. A plain
// value; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/patterns/onig_pattern.h"

namespace vllm {

struct PeftConfig {
  enum class Bias : uint8_t { kNone, kAll, kLoRAOnly };
  int64_t r = 8;
  double lora_alpha = 8.0;
  bool use_rslora = false;
  bool lora_bias = false;
  bool use_dora = false;
  Bias bias = Bias::kNone;
  // Values for the modules whose names match a regular expression, in the order of the file. The first match counts.
  template <typename Value>
  struct Pattern {
    std::shared_ptr<const tokenizer::OnigPattern> regex;
    Value value{};
  };
  std::vector<Pattern<int64_t>> rank_pattern;
  std::vector<Pattern<double>> alpha_pattern;

  // Returns the rank of the matrices of a module, such as "model.layers.0.self_attn.q_proj", and the factor of their
  // product: alpha / rank, or alpha / sqrt(rank) with use_rslora.
  int64_t RankOf(std::string_view module) const;
  double ScaleOf(std::string_view module) const;
};

// Parses the contents of an adapter_config.json. `what`, such as "adapter /x/adapter_config.json", starts every error
// message. Throws ModelError if the text is malformed, if a value is out of range, or if a field asks for something
// that this engine does not do.
PeftConfig ParsePeftConfig(std::string_view text, const std::string& what);

}  // namespace vllm
