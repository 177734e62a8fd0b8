// RequestId: the engine's own id of a sequence. LLMEngine assigns ids in increasing order and never reuses one, so two
// requests have different engine ids even if their callers chose the same id. 0 means no request. A plain value.
#pragma once

#include <cstdint>

namespace vllm {

using RequestId = uint64_t;

}  // namespace vllm
