// GgufBuilder: builds the bytes of a valid or malformed GGUF file for tests. Used by one thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/model_loader/gguf/format/type.h"

namespace vllm {

template <typename T>
std::string Raw(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string RawString(std::string_view text) { return Raw<uint64_t>(text.size()) + std::string(text); }

inline std::string RawType(GgufValueType type) { return Raw(static_cast<uint32_t>(type)); }

inline std::string RawPair(std::string_view key, GgufValueType type, const std::string& value) {
  return RawString(key) + RawType(type) + value;
}

class GgufBuilder {
 public:
  uint32_t version = 3;
  uint64_t alignment = 32;

  GgufBuilder& Pair(std::string_view key, GgufValueType type, const std::string& value) {
    pairs_ += RawPair(key, type, value);
    ++num_pairs_;
    return *this;
  }
  GgufBuilder& Int(std::string_view key, uint32_t value) { return Pair(key, GgufValueType::kUint32, Raw(value)); }
  GgufBuilder& Float(std::string_view key, float value) { return Pair(key, GgufValueType::kFloat32, Raw(value)); }
  GgufBuilder& Bool(std::string_view key, bool value) { return Pair(key, GgufValueType::kBool, Raw<uint8_t>(value)); }
  GgufBuilder& String(std::string_view key, std::string_view value) {
    return Pair(key, GgufValueType::kString, RawString(value));
  }
  GgufBuilder& Strings(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = RawType(GgufValueType::kString) + Raw<uint64_t>(values.size());
    for (const std::string& value : values) bytes += RawString(value);
    return Pair(key, GgufValueType::kArray, bytes);
  }
  template <typename T>
  GgufBuilder& Array(std::string_view key, GgufValueType element, const std::vector<T>& values) {
    std::string bytes = RawType(element) + Raw<uint64_t>(values.size());
    for (const T value : values) bytes += Raw(value);
    return Pair(key, GgufValueType::kArray, bytes);
  }
  // `dimensions` are in file order, innermost first.
  GgufBuilder& Tensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type,
                      const std::string& data) {
    return RawTensor(name, dimensions, type, data_.size(), data);
  }
  GgufBuilder& RawTensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type, uint64_t offset,
                         const std::string& data) {
    tensors_ += RawString(name) + Raw(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t dimension : dimensions) tensors_ += Raw(dimension);
    tensors_ += Raw(type) + Raw(offset);
    ++num_tensors_;
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  GgufBuilder& Floats(std::string_view name, const std::vector<uint64_t>& dimensions,
                      const std::vector<float>& values) {
    std::string data(values.size() * sizeof(float), '\0');
    std::memcpy(data.data(), values.data(), data.size());
    return Tensor(name, dimensions, 0, data);
  }

  std::string Build() const { return Build(num_tensors_, num_pairs_); }
  std::string Build(uint64_t num_tensors, uint64_t num_pairs) const {
    std::string file = "GGUF" + Raw(version) + Raw(num_tensors) + Raw(num_pairs) + pairs_ + tensors_;
    if (!data_.empty()) file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

 private:
  uint64_t num_pairs_ = 0;
  uint64_t num_tensors_ = 0;
  std::string pairs_;
  std::string tensors_;
  std::string data_;
};

// Returns a one-layer model with the keys and tensors of a llama model, under the name `architecture`. Each tensor's
// elements are 0, 1, 2, ...
inline GgufBuilder TinyGguf(std::string_view architecture = "llama") {
  GgufBuilder file;
  const std::string a = std::string(architecture) + ".";
  file.String("general.architecture", architecture);
  file.Int(a + "context_length", 64).Int(a + "embedding_length", 8).Int(a + "block_count", 1);
  file.Int(a + "feed_forward_length", 6).Int(a + "attention.head_count", 2).Int(a + "attention.head_count_kv", 1);
  file.Float(a + "attention.layer_norm_rms_epsilon", 1e-5F);
  const auto add = [&](const char* name, uint64_t columns, uint64_t rows) {
    std::vector<float> values(columns * rows);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    std::vector<uint64_t> dimensions = {columns};
    if (rows > 1) dimensions.push_back(rows);
    file.Floats(name, dimensions, values);
  };
  add("token_embd.weight", 8, 5);
  add("output_norm.weight", 8, 1);
  add("blk.0.attn_norm.weight", 8, 1);
  add("blk.0.attn_q.weight", 8, 8);
  add("blk.0.attn_k.weight", 8, 4);
  add("blk.0.attn_v.weight", 8, 4);
  add("blk.0.attn_output.weight", 8, 8);
  add("blk.0.ffn_norm.weight", 8, 1);
  add("blk.0.ffn_gate.weight", 8, 6);
  add("blk.0.ffn_up.weight", 8, 6);
  add("blk.0.ffn_down.weight", 6, 8);
  return file;
}

}  // namespace vllm
