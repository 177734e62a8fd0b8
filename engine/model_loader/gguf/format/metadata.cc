#include "engine/model_loader/gguf/format/metadata.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm {
namespace {

template <typename T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

std::string NumberText(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string TypeText(const GgufValue& value) {
  if (value.type != GgufValueType::kArray) return std::string(NameOf(value.type));
  return "array of " + std::string(NameOf(value.element_type));
}

// Returns the double with the shortest decimal form that rounds to `value`. This is usually the number in the model's
// config, which the converter rounded to float: 1e-05, not 9.99999974738e-06.
double Shortest(float value) {
  if (!std::isfinite(value)) return value;
  std::array<char, 32> text{};
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double shortest = 0.0;
  std::from_chars(text.data(), end, shortest);
  return shortest;
}

// Returns nullopt if the type is not an integer type. Clamps uint64 values to the int64 maximum.
std::optional<int64_t> WholeNumber(GgufValueType type, const std::byte* bytes) {
  switch (type) {
    case GgufValueType::kUint8:
      return Load<uint8_t>(bytes);
    case GgufValueType::kInt8:
      return Load<int8_t>(bytes);
    case GgufValueType::kUint16:
      return Load<uint16_t>(bytes);
    case GgufValueType::kInt16:
      return Load<int16_t>(bytes);
    case GgufValueType::kUint32:
      return Load<uint32_t>(bytes);
    case GgufValueType::kInt32:
      return Load<int32_t>(bytes);
    case GgufValueType::kInt64:
      return Load<int64_t>(bytes);
    case GgufValueType::kUint64: {
      // Every caller's upper limit is below the int64 maximum, so the clamped value is out of range too.
      const auto limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      return static_cast<int64_t>(std::min(Load<uint64_t>(bytes), limit));
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

void GgufMetadata::Sort() {
  std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) { return a.key < b.key; });
  for (size_t i = 1; i < pairs_.size(); ++i) {
    if (pairs_[i].key == pairs_[i - 1].key) Fail(pairs_[i].key, "duplicate key");
  }
}

const GgufValue* GgufMetadata::Find(std::string_view key) const {
  const auto it = std::lower_bound(pairs_.begin(), pairs_.end(), key,
                                   [](const Pair& pair, std::string_view name) { return pair.key < name; });
  return it != pairs_.end() && it->key == key ? &it->value : nullptr;
}

const GgufValue* GgufMetadata::FindArray(std::string_view key, GgufValueType element) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return nullptr;
  if (value->type != GgufValueType::kArray || value->element_type != element) {
    Fail(key, "must be an array of " + std::string(NameOf(element)) + " (" + TypeText(*value) + ")");
  }
  return value;
}

std::optional<int64_t> GgufMetadata::Int(std::string_view key, int64_t low, int64_t high) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<int64_t> number = WholeNumber(value->type, value->bytes.data());
  if (!number) Fail(key, "must be a whole number (" + TypeText(*value) + ")");
  if (!(*number >= low && *number <= high)) {
    Fail(key, "outside " + std::to_string(low) + " to " + std::to_string(high) + " (" + std::to_string(*number) + ")");
  }
  return number;
}

std::optional<double> GgufMetadata::Double(std::string_view key, double low, double high) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  double number = 0.0;
  if (value->type == GgufValueType::kFloat32) {
    number = Shortest(Load<float>(value->bytes.data()));
  } else if (value->type == GgufValueType::kFloat64) {
    number = Load<double>(value->bytes.data());
  } else {
    Fail(key, "must be a float (" + TypeText(*value) + ")");
  }
  if (!(number >= low && number <= high)) {
    Fail(key, "outside " + NumberText(low) + " to " + NumberText(high) + " (" + NumberText(number) + ")");
  }
  return number;
}

std::optional<double> GgufMetadata::PositiveDouble(std::string_view key, double high) const {
  const std::optional<double> number = Double(key, 0.0, high);
  if (number == 0.0) Fail(key, "not above 0 (0)");
  return number;
}

std::optional<bool> GgufMetadata::Bool(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::kBool) Fail(key, "must be a bool (" + TypeText(*value) + ")");
  const auto byte = Load<uint8_t>(value->bytes.data());
  if (byte > 1) Fail(key, "not 0 or 1 (" + std::to_string(byte) + ")");
  return byte == 1;
}

std::optional<std::string_view> GgufMetadata::String(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufValueType::kString) Fail(key, "must be a string (" + TypeText(*value) + ")");
  return std::string_view(reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size());
}

int64_t GgufMetadata::RequiredInt(std::string_view key, int64_t low, int64_t high) const {
  const std::optional<int64_t> number = Int(key, low, high);
  if (!number) Fail(key, "missing");
  return *number;
}

std::vector<std::string_view> GgufMetadata::Strings(std::string_view key) const {
  std::vector<std::string_view> strings;
  const GgufValue* value = FindArray(key, GgufValueType::kString);
  if (value == nullptr) return strings;
  strings.reserve(value->count);
  // ParseGguf has checked that every string fits in the bytes.
  const std::byte* position = value->bytes.data();
  for (uint64_t i = 0; i < value->count; ++i) {
    const auto length = Load<uint64_t>(position);
    strings.emplace_back(reinterpret_cast<const char*>(position) + sizeof(length), length);
    position += sizeof(length) + length;
  }
  return strings;
}

std::vector<float> GgufMetadata::Floats(std::string_view key) const {
  std::vector<float> floats;
  const GgufValue* value = FindArray(key, GgufValueType::kFloat32);
  if (value == nullptr || value->count == 0) return floats;
  floats.resize(value->count);
  std::memcpy(floats.data(), value->bytes.data(), value->bytes.size());
  return floats;
}

std::vector<int32_t> GgufMetadata::Ints(std::string_view key) const {
  std::vector<int32_t> ints;
  const GgufValue* value = Find(key);
  if (value == nullptr) return ints;
  const bool is_array = value->type == GgufValueType::kArray;
  const bool is_int32 = value->element_type == GgufValueType::kInt32 || value->element_type == GgufValueType::kUint32;
  if (!is_array || !is_int32) Fail(key, "must be an array of int32 or uint32 (" + TypeText(*value) + ")");
  if (value->count == 0) return ints;
  ints.resize(value->count);
  std::memcpy(ints.data(), value->bytes.data(), value->bytes.size());
  return ints;
}

std::vector<bool> GgufMetadata::Bools(std::string_view key) const {
  std::vector<bool> bools;
  const GgufValue* value = FindArray(key, GgufValueType::kBool);
  if (value == nullptr) return bools;
  for (const std::byte byte : value->bytes) bools.push_back(byte != std::byte{0});
  return bools;
}

std::string_view GgufMetadata::Bytes(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return {};
  if (value->type != GgufValueType::kArray ||
      (value->element_type != GgufValueType::kUint8 && value->element_type != GgufValueType::kInt8)) {
    Fail(key, "must be an array of uint8 or int8 (" + TypeText(*value) + ")");
  }
  return {reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size()};
}

bool GgufMetadata::IsArray(std::string_view key) const {
  const GgufValue* value = Find(key);
  return value != nullptr && value->type == GgufValueType::kArray;
}

uint64_t GgufMetadata::Count(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return 0;
  if (value->type != GgufValueType::kArray) Fail(key, "must be an array (" + TypeText(*value) + ")");
  return value->count;
}

void GgufMetadata::Fail(std::string_view key, const std::string& why) const {
  throw ModelError(what_ + ": " + Escape(key, 80) + ": " + why);
}

}  // namespace vllm
