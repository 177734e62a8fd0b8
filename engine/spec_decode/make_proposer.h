// MakeProposer: the Proposer of a configuration. Called by EngineCore; engine thread only.
#pragma once

#include <memory>

#include "engine/config/speculative_config.h"
#include "engine/spec_decode/proposer.h"

namespace vllm {

// Returns null for the methods kOff and kGrammar, which need none, and for kDraftModel; see DraftModelProposer.
std::unique_ptr<Proposer> MakeProposer(const SpeculativeConfig& config);

}  // namespace vllm
