#include "kernels/matrix/openblas.h"

#include <dlfcn.h>

namespace vllm::kernels {

namespace {

// Constants of the CBLAS interface.
constexpr int kRowMajor = 101;
constexpr int kNoTrans = 111;
constexpr int kTrans = 112;

}  // namespace

const OpenBlas* OpenBlas::Get(std::string& error) {
  struct Loaded {
    OpenBlas blas;
    std::string error;
  };
  static const Loaded loaded = [] {
    Loaded result;
    // This soname is part of the library's ABI. Debian's libopenblas0 variants (pthread, openmp, serial) have it.
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      const char* message = dlerror();
      result.error = message != nullptr ? message : "unknown error";
      return result;
    }
    if (auto* set_num_threads = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads")))
      set_num_threads(1);
    result.blas.sgemm_ = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    if (result.blas.sgemm_ == nullptr) result.error = "libopenblas.so.0 has no cblas_sgemm";
    return result;
  }();
  error = loaded.error;
  return loaded.blas.sgemm_ != nullptr ? &loaded.blas : nullptr;
}

void OpenBlas::Multiply(const float* x, int64_t x_stride, int64_t num_rows, const float* w, int64_t out, int64_t in,
                        float* y, int64_t y_stride) const {
  sgemm_(kRowMajor, kNoTrans, kTrans, static_cast<int>(num_rows), static_cast<int>(out), static_cast<int>(in), 1.0f, x,
         static_cast<int>(x_stride), w, static_cast<int>(in), 0.0f, y, static_cast<int>(y_stride));
}

}  // namespace vllm::kernels
