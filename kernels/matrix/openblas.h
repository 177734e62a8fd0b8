// OpenBlas: the single-precision matrix product of OpenBLAS. The library is loaded on first use, so startup pays for it
// only if it is needed. Its reduction order depends on the number of rows, so results depend on the other requests in
// the batch. Any thread.
#pragma once

#include <cstdint>
#include <string>

namespace vllm::kernels {

class OpenBlas {
 public:
  // Returns the only instance. If the library cannot be loaded or has no cblas_sgemm, returns null and sets `error` to
  // the reason. OpenBLAS itself uses one thread per call.
  static const OpenBlas* Get(std::string& error);

  // y [num_rows, out] = x [num_rows, in] * w^T, with w [out, in] row-major.
  void Multiply(const float* x, int64_t x_stride, int64_t num_rows, const float* w, int64_t out, int64_t in, float* y,
                int64_t y_stride) const;

 private:
  using Sgemm = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
                         const float* b, int ldb, float beta, float* c, int ldc);
  Sgemm sgemm_ = nullptr;
};

}  // namespace vllm::kernels
