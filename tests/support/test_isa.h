// The instruction set that $VLLMCLI_ISA names, for tests and benchmarks that run a model or kernels directly. The
// engine itself knows no environment.
#pragma once

#include <cstdlib>
#include <optional>
#include <string_view>

#include "kernels/isa.h"

namespace vllm::testing_support {

// None when the variable is not set, names nothing or names what this machine does not run.
inline std::optional<Isa> IsaFromEnvironment() {
  const char* name = std::getenv("VLLMCLI_ISA");
  if (name == nullptr) return std::nullopt;
  for (const Isa isa : AvailableIsas()) {
    if (ToString(isa) == std::string_view(name)) return isa;
  }
  return std::nullopt;
}

// `config` with that instruction set, unless it names one itself.
template <typename Config>
Config WithTestIsa(Config config) {
  if (!config.isa) config.isa = IsaFromEnvironment();
  return config;
}

}  // namespace vllm::testing_support
