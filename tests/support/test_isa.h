// Reads the instruction set from $VLLMCLI_ISA, for tests and benchmarks that run a model or kernels directly. The
// engine itself reads no environment variables.
#pragma once

#include <cstdlib>
#include <optional>
#include <string_view>

#include "kernels/isa.h"

namespace vllm::testing_support {

// Returns nullopt if $VLLMCLI_ISA is not set, or if it names an instruction set that is unknown or that this machine
// lacks.
inline std::optional<kernels::Isa> IsaFromEnvironment() {
  const char* name = std::getenv("VLLMCLI_ISA");
  if (name == nullptr) return std::nullopt;
  for (const kernels::Isa isa : kernels::AvailableIsas()) {
    if (ToString(isa) == std::string_view(name)) return isa;
  }
  return std::nullopt;
}

// Returns `config` with the instruction set of $VLLMCLI_ISA, unless `config` already names one.
template <typename Config>
Config WithTestIsa(Config config) {
  if (!config.isa) config.isa = IsaFromEnvironment();
  return config;
}

}  // namespace vllm::testing_support
