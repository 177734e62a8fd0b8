// One-time initialization of the Oniguruma library. Any thread.
#pragma once

namespace vllm::tokenizer {

// Must be called before any other use of Oniguruma. Later calls do nothing. Throws std::runtime_error if the
// initialization fails.
void InitializeOniguruma();

}  // namespace vllm::tokenizer
