// RequestId: the engine's id of a request. The front end counts it up and never reuses a number within a process, so
// equal ids chosen by users cannot collide. 0 means no request.
#pragma once

#include <cstdint>

namespace vllm {

using RequestId = uint64_t;

}  // namespace vllm
