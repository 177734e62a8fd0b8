// Kernels of layers with recurrent state: the causal convolution over the last few tokens, and the recurrence of linear
// attention (gated delta rule, arXiv 2412.06464; Mamba-2, arXiv 2405.21060). Tokens are processed one after the other,
// so the result of a token has the same bits however a sequence is divided into calls. Any thread may call a kernel.
#pragma once

#include <cstdint>

namespace vllm::kernels {

// One head over consecutive tokens of one sequence, with the state S [key_dim, value_dim]:
//
//   u = beta * (v - decay * k^T S)     with the delta rule
//   u = beta * v                       without
//   S = decay * S + k u^T
//   out = q^T S + skip * v
//
// q and k: rows of key_dim floats, key_stride apart. v: rows of value_dim floats, value_stride apart. decay and beta:
// one float per token, gate_stride apart. out: rows of value_dim floats, out_stride apart, or null: only S is updated.
struct LinearRecurrenceArgs {
  int64_t num_rows = 0;
  int64_t key_dim = 0;
  int64_t value_dim = 0;
  const float* query = nullptr;
  const float* key = nullptr;
  int64_t key_stride = 0;
  const float* value = nullptr;
  int64_t value_stride = 0;
  const float* decay = nullptr;
  const float* beta = nullptr;
  int64_t gate_stride = 0;
  float* state = nullptr;
  float* out = nullptr;
  int64_t out_stride = 0;
  bool delta_rule = false;
  float skip = 0.0f;
};

struct RecurrentKernels {
  // out[i] = bias[i] + sum over t of weight[t * weight_stride + i] * taps[t][i], t ascending. The taps are the rows of
  // num_taps consecutive tokens, oldest first; a null tap is a row of zeros. bias may be null.
  void (*causal_conv)(const float* const* taps, int64_t num_taps, const float* weight, int64_t weight_stride,
                      const float* bias, int64_t n, float* out);
  void (*linear_recurrence)(const LinearRecurrenceArgs& args);
};

}  // namespace vllm::kernels
