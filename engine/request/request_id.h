// The engine's own name of a request: a number that the front end counts up, never used twice in a process, so that
// equal ids given by users cannot collide. 0 is nobody.
#pragma once

#include <cstdint>

namespace vllm {

using RequestId = uint64_t;

}  // namespace vllm
