// One-time initialization of the Oniguruma library. Any thread.
#pragma once

namespace vllm {

// Call it before any other use of Oniguruma; later calls do nothing. Throws std::runtime_error.
void InitializeOniguruma();

}  // namespace vllm
