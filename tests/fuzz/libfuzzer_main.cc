// libFuzzer's entry point.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  vllm::FuzzOne({reinterpret_cast<const char*>(data), size});
  return 0;
}
