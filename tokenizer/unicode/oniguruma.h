// One-time initialization of the Oniguruma library. Any thread.
#pragma once

namespace vllm::tokenizer {

// Must be called before any other use of Oniguruma. Only the first call initializes the library. Every call throws
// std::runtime_error if that failed.
void InitializeOniguruma();

}  // namespace vllm::tokenizer
