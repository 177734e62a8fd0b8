// Suggests an architecture that runs in place of one that does not: a relative of the same family, found by a small
// table or by the words of the name. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace vllm {

// Returns the architecture of registry.cc that is nearest to `architecture`, a name in config.json or in a GGUF file's
// general.architecture. Returns `architecture` if it is in the table, and an empty view if nothing is near.
std::string_view NearestArchitecture(std::string_view architecture);

// The beginning of the hints of errors that reject a model.
inline constexpr std::string_view kNearestPrefix = "nearest that runs: ";

// Returns a hint for an error that rejects a model of this architecture, such as
// "nearest that runs: Mamba2ForCausalLM (Mamba-2), such as mistralai/Mamba-Codestral-7B-v0.1".
std::string NearestHint(std::string_view architecture);

}  // namespace vllm
