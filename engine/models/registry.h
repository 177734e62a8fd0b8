// The registry of architectures: maps an architecture's name in config.json to the code that builds its model.
// Read-only once main has started, so any thread may read it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/models/decoder/decoder_spec.h"
#include "engine/models/decoder/model.h"

namespace vllm {

// An architecture in the table of registry.cc. `family` is the name by which people know its models, and `example` the
// name of a published one on the Hugging Face hub, or empty.
struct ArchitectureInfo {
  std::string_view name;
  std::string_view family;
  std::string_view example;
};

// Returns the table, in its order: decoders first, then encoders, then vision-language models.
std::vector<ArchitectureInfo> ArchitectureTable();
bool IsKnownArchitecture(std::string_view architecture);
// Throws ModelError, with the nearest known architecture in its hint, if config.architecture is unknown.
void CheckArchitecture(const ModelConfig& config);

// Builds the model of load.config.model.architecture. Throws as CheckArchitecture, the architecture's spec function and
// DecoderModel do.
std::unique_ptr<Model> BuildModel(const LoadContext& load);
// Like BuildModel, but for `architecture` instead of the config's. REQUIRES: IsKnownArchitecture(architecture).
std::unique_ptr<Model> BuildArchitecture(std::string_view architecture, const LoadContext& load);
// Returns the spec of an architecture. REQUIRES: the architecture is in the table of registry.cc.
DecoderSpec MakeDecoderSpec(std::string_view architecture, const ModelConfig& config);

// Adds an architecture that is not in the table of registry.cc. Returns false if the name is already known. For
// tests, which call it during static initialization.
using ModelFactory = std::unique_ptr<Model> (*)(const LoadContext&);
bool RegisterModel(std::string_view architecture, ModelFactory factory);

}  // namespace vllm
