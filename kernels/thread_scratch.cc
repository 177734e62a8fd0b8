#include "kernels/thread_scratch.h"

#include "kernels/matrix/aligned_buffer.h"

namespace vllm::kernels {

void* ThreadScratch() {
  thread_local const AlignedBuffer scratch(kThreadScratchBytes);
  return scratch.data();
}

}  // namespace vllm::kernels
