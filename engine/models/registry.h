// The registry of architectures: maps the name in config.json to the model that runs it. Read-only once main runs, so
// any thread may read it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/models/decoder_spec.h"
#include "engine/models/model.h"

namespace vllm {

std::vector<std::string> KnownArchitectures();  // sorted
bool IsKnownArchitecture(std::string_view architecture);
// Throws ModelError, which lists the known architectures, if the config's is unknown.
void CheckArchitecture(const ModelConfig& config);

// Builds the model of load.config.model.architecture. Throws ModelError.
std::unique_ptr<Model> BuildModel(const LoadContext& load);
// Builds the model as `architecture` instead of the config's. REQUIRES: IsKnownArchitecture(architecture).
std::unique_ptr<Model> BuildArchitecture(std::string_view architecture, const LoadContext& load);
// REQUIRES: the architecture is in the table of registry.cc.
DecoderSpec MakeDecoderSpec(std::string_view architecture, const ModelConfig& config);

// Adds an architecture that is not in the table of registry.cc. Returns false if the name is taken. For tests; call it
// before any other thread runs.
using ModelFactory = std::unique_ptr<Model> (*)(const LoadContext&);
bool RegisterModel(std::string_view architecture, ModelFactory factory);

}  // namespace vllm
