// Plain numbers -> GGML blocks, at load. Pure functions; any thread.
#pragma once

#include <cstdint>

namespace vllm {

// count is a multiple of 32; out has BytesOf(type, count) bytes.
// Q8_0 as GGML's reference makes it: the largest magnitude of a block becomes 127.
void QuantizeQ8_0(const float* x, int64_t count, uint8_t* out);
// IQ4_NL: of several scales around the largest magnitude's, the one with the smallest squared error.
void QuantizeIQ4_NL(const float* x, int64_t count, uint8_t* out);

}  // namespace vllm
