// SafetensorsBytes: the contents of a safetensors file of float32 tensors, for tests that write checkpoints. Any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace vllm::testing_support {

using Shapes = std::map<std::string, std::vector<int64_t>>;

// `next` is called for each element, in the order of the file.
inline std::string SafetensorsBytes(const Shapes& shapes, const std::function<float()>& next) {
  nlohmann::json header = nlohmann::json::object();
  size_t offset = 0;
  std::string data;
  for (const auto& [name, shape] : shapes) {
    size_t bytes = sizeof(float);
    for (const int64_t size : shape) bytes *= static_cast<size_t>(size);
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
    for (size_t i = 0; i < bytes; i += sizeof(float)) {
      const float value = next();
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  const std::string text = header.dump();
  const uint64_t size = text.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + data;
}

}  // namespace vllm::testing_support
