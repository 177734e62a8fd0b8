// GgufMetadata: the key-value pairs of a GGUF file, as views on its bytes, with typed and range-checked getters; every
// refusal names the key and its value. Immutable after Add and Sort; any thread may read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/gguf/type.h"

namespace vllm {

struct GgufValue {
  GgufValueType type = GgufValueType::kUint8;
  GgufValueType element_type = GgufValueType::kUint8;  // of an array
  uint64_t count = 1;                                  // elements of an array, nested ones not counted
  std::span<const std::byte> bytes;                    // without a string's length and an array's type and count
};

class GgufMetadata {
 public:
  // `what` opens every message: "gguf file /models/x.gguf".
  explicit GgufMetadata(std::string what) : what_(std::move(what)) {}

  void Add(std::string_view key, const GgufValue& value) { pairs_.push_back({key, value}); }
  // Throws ModelError for a key that occurs twice.
  void Sort();

  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  size_t size() const { return pairs_.size(); }

  // All throw ModelError when the value is of another type or not in the range; none when there is no such key.
  // Whole numbers may be of any width. Of a float32 the shortest decimal that rounds to it is taken.
  std::optional<int64_t> Int(std::string_view key, int64_t low, int64_t high) const;
  std::optional<double> Double(std::string_view key, double low, double high) const;
  std::optional<double> PositiveDouble(std::string_view key, double high) const;
  std::optional<bool> Bool(std::string_view key) const;
  std::optional<std::string_view> String(std::string_view key) const;
  int64_t RequiredInt(std::string_view key, int64_t low, int64_t high) const;

  // Empty when there is no such key. Memory is in proportion to the bytes of the array.
  std::vector<std::string_view> Strings(std::string_view key) const;
  std::vector<float> Floats(std::string_view key) const;
  std::vector<int32_t> Ints(std::string_view key) const;
  std::vector<bool> Bools(std::string_view key) const;
  std::string_view Bytes(std::string_view key) const;  // an array of uint8 or int8
  bool IsArray(std::string_view key) const;
  // Elements of the array; 0 when there is no such key.
  uint64_t Count(std::string_view key) const;

  [[noreturn]] void Fail(std::string_view key, const std::string& why) const;
  const std::string& what() const { return what_; }

 private:
  struct Pair {
    std::string_view key;
    GgufValue value;
  };
  const GgufValue* Find(std::string_view key) const;
  const GgufValue* FindArray(std::string_view key, GgufValueType element) const;

  std::string what_;
  std::vector<Pair> pairs_;
};

}  // namespace vllm
