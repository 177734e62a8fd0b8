// Reads the fields of config.json of models with Mamba-2: Mamba-2 itself, Granite 4, Falcon-H1 and Nemotron-H. Pure
// functions; any thread. All throw ModelError naming the field.
#pragma once

#include <cstdint>
#include <string>

#include "engine/config/model_config.h"
#include "engine/model_loader/config_fields.h"

namespace vllm {

// The number of positions of models with no attention. The value is that of llama.cpp's converter; --max-model-len may
// exceed it.
inline constexpr int64_t kUnlimitedPositions = int64_t{1} << 20;

// REQUIRES, for all: config.model_type, hidden_act and the sizes are set.
void ReadMamba2(const ConfigFields& fields, ModelConfig& config);
void ReadGraniteMamba(const ConfigFields& fields, ModelConfig& config);
void ReadFalconH1(const ConfigFields& fields, ModelConfig& config);
void ReadNemotronH(const ConfigFields& fields, ModelConfig& config);
// Sets the mixers of Mamba-2 and Falcon-H1, which are the same in all layers.
void SetMambaLayers(ModelConfig& config);
// Returns the kind of each layer of Nemotron-H: a letter of hybrid_override_pattern.
std::string NemotronHPattern(const ConfigFields& fields);
// REQUIRES: config.layers has one entry per letter of the pattern.
void ReadNemotronHLayers(const ConfigFields& fields, ModelConfig& config);

}  // namespace vllm
