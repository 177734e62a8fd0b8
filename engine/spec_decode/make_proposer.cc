#include "engine/spec_decode/make_proposer.h"

#include "engine/spec_decode/ngram_proposer.h"
#include "engine/spec_decode/suffix_proposer.h"

namespace vllm {

std::unique_ptr<Proposer> MakeProposer(const SpeculativeConfig& config) {
  switch (config.method) {
    case SpeculativeMethod::kNgram:
      return std::make_unique<NgramProposer>(config.prompt_lookup_min, config.prompt_lookup_max);
    case SpeculativeMethod::kSuffix:
      return std::make_unique<SuffixProposer>(config);
    case SpeculativeMethod::kOff:
    case SpeculativeMethod::kGrammar:
    case SpeculativeMethod::kDraftModel:
      break;
  }
  return nullptr;
}

}  // namespace vllm
