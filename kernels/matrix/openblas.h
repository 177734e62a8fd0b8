// OpenBLAS' single-precision matrix product, loaded when it is first asked for, so that a start without it costs
// nothing. Its order of summation depends on the number of rows: results with it depend on what a request is batched
// with.
#pragma once

#include <cstdint>
#include <string>

namespace vllm {

class OpenBlas {
 public:
  // The one instance; null when the library cannot be loaded, and then `why` says why. Threads inside OpenBLAS are
  // turned off.
  static const OpenBlas* Get(std::string& why);

  // y [num_rows, out] = x [num_rows, in] times w^T, w [out, in] row-major. Any thread.
  void Multiply(const float* x, int64_t x_stride, int64_t num_rows, const float* w, int64_t out, int64_t in, float* y,
                int64_t y_stride) const;

 private:
  using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                         const float* b, int ldb, float beta, float* c, int ldc);
  Sgemm sgemm_ = nullptr;
};

}  // namespace vllm
