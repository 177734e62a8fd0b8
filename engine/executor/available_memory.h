// How much memory this process may still take: the least of what the machine, its control group and its limits leave.
#pragma once

#include <cstdint>
#include <string>

namespace vllm {

struct AvailableMemory {
  int64_t bytes = 0;
  std::string bound;  // what sets it: "MemAvailable", "cgroup memory.max", "RLIMIT_AS"
};

AvailableMemory ReadAvailableMemory();

}  // namespace vllm
