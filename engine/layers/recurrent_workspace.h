// RecurrentWorkspace: scratch of the layers with recurrent state, which share it, one layer at a time. Reserved at
// load. Part of the rank's Workspace; used on the rank's thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace vllm {

struct RecurrentWorkspace {
  std::vector<std::vector<float>> scratch;  // [num_threads]

  void Reserve(int num_threads, size_t floats) {
    scratch.resize(static_cast<size_t>(num_threads));
    for (std::vector<float>& buffer : scratch) buffer.resize(std::max(buffer.size(), floats));
  }
  size_t size_bytes() const {
    size_t bytes = 0;
    for (const std::vector<float>& buffer : scratch) bytes += buffer.capacity() * sizeof(float);
    return bytes;
  }
};

}  // namespace vllm
