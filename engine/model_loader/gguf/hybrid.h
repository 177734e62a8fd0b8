// Reads the metadata of GGUF files whose layers have recurrent state: LFM2, Granite 4, Mamba-2, Falcon-H1 and
// Nemotron-H. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "engine/config/model_config.h"
#include "engine/model_loader/gguf/format/file.h"

namespace vllm {

// How the layers of a GGUF architecture mix tokens. kShortConv and kMamba2: a layer without KV heads has a short
// convolution or Mamba-2. kOnlyMamba2: all layers have Mamba-2, and none has attention or an MLP. kParallel: all layers
// have attention and Mamba-2. kOneBlock: a layer has attention if it has KV heads, else an MLP if it has a feed-forward
// length, else Mamba-2.
enum class GgufHybrid : uint8_t { kNone, kShortConv, kMamba2, kOnlyMamba2, kParallel, kOneBlock };

// Sets the mixers of config.layers and the sizes of the state. REQUIRES: the other sizes and config.layers are set, and
// if there are experts, is_moe of all layers. Throws ModelError naming the key.
void ReadGgufHybrid(const GgufFile& file, GgufHybrid hybrid, ModelConfig& config);

}  // namespace vllm
