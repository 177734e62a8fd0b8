// Fuzzes the parser of adapter_config.json. An accepted configuration gives a positive rank and a finite scale.
#include <cmath>

#include "engine/config/errors.h"
#include "engine/lora/peft_config.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {

void FuzzOne(std::string_view bytes) {
  try {
    const PeftConfig config = ParsePeftConfig(bytes, "fuzz");
    for (const char* module : {"model.layers.0.self_attn.q_proj", "lm_head"}) {
      Require(config.RankOf(module) > 0, "ranks are positive");
      Require(std::isfinite(config.ScaleOf(module)), "scales are finite");
    }
  } catch (const ModelError&) {
  }
}

}  // namespace vllm
