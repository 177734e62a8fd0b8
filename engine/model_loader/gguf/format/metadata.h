// GgufMetadata: the key-value pairs of a GGUF file, as views of its bytes, with typed and range-checked getters. Error
// messages name the key and show an invalid value or type. Owned by GgufHeader. Immutable after Sort; any thread may
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model_loader/gguf/format/type.h"

namespace vllm {

struct GgufValue {
  GgufValueType type = GgufValueType::kUint8;
  GgufValueType element_type = GgufValueType::kUint8;  // arrays only
  uint64_t count = 1;                                  // elements of an array, not counting nested ones
  std::span<const std::byte> bytes;                    // the payload, without the value's own length, type or count
};

class GgufMetadata {
 public:
  // `what` starts every error message: "gguf file /models/x.gguf".
  explicit GgufMetadata(std::string what) : what_(std::move(what)) {}

  void Add(std::string_view key, const GgufValue& value) { pairs_.push_back({key, value}); }
  // Sorts the pairs; call it once before using the getters. Throws ModelError if a key occurs twice.
  void Sort();

  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  size_t size() const { return pairs_.size(); }

  // Scalars. Return nullopt if the key is missing; RequiredInt throws instead. Throw ModelError if the value has the
  // wrong type or is outside [low, high], or (0, high] for PositiveDouble. Int accepts integers of any width. Double
  // reads a float32 as the shortest decimal that rounds to it.
  std::optional<int64_t> Int(std::string_view key, int64_t low, int64_t high) const;
  std::optional<double> Double(std::string_view key, double low, double high) const;
  std::optional<double> PositiveDouble(std::string_view key, double high) const;
  std::optional<bool> Bool(std::string_view key) const;
  std::optional<std::string_view> String(std::string_view key) const;
  int64_t RequiredInt(std::string_view key, int64_t low, int64_t high) const;

  // Arrays. Return an empty result if the key is missing. All except IsArray throw ModelError if the value is not an
  // array with elements of the getter's type. Memory use is proportional to the array's size in the file.
  std::vector<std::string_view> Strings(std::string_view key) const;
  std::vector<float> Floats(std::string_view key) const;
  std::vector<int32_t> Ints(std::string_view key) const;  // an array of int32 or uint32
  std::vector<bool> Bools(std::string_view key) const;
  std::string_view Bytes(std::string_view key) const;  // an array of uint8 or int8
  bool IsArray(std::string_view key) const;            // false if the key is missing
  // Returns the number of elements of the array, or 0 if the key is missing.
  uint64_t Count(std::string_view key) const;

  // Throws ModelError.
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
