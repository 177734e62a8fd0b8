#include "engine/model_loader/gguf/format/header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/gguf/format/cursor.h"

namespace vllm {
namespace {

constexpr uint32_t kMinVersion = 2;
constexpr uint32_t kMaxVersion = 3;
// The largest published files have a few hundred keys and, if experts are separate tensors, about ten thousand tensors.
// The limits bound the memory that a malformed file can make the parser allocate.
constexpr uint64_t kMaxPairs = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 18;
constexpr uint64_t kMaxKeyBytes = 65535;  // the format's own limit
constexpr uint64_t kMaxNameBytes = 64;    // the format's own limit
constexpr uint32_t kMaxDimensions = 4;
constexpr size_t kMaxArrayDepth = 4;
// Lower bounds of the encoded size of a pair (key length, type, one value byte) and of a tensor (name length, number of
// dimensions, type, offset).
constexpr uint64_t kMinPairBytes = 8 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 4 + 4 + 8;

struct ArrayHead {
  GgufValueType element = GgufValueType::kUint8;
  uint64_t count = 0;
};

ArrayHead ReadArrayHead(GgufCursor& cursor, std::string_view key) {
  const auto type = cursor.Read<uint32_t>(key);
  const auto count = cursor.Read<uint64_t>(key);
  if (type > static_cast<uint32_t>(GgufValueType::kFloat64)) {
    cursor.Fail(key, "unknown type of array elements (" + std::to_string(type) + ")");
  }
  const auto element = static_cast<GgufValueType>(type);
  uint64_t min_bytes = SizeOf(element);
  if (element == GgufValueType::kString) min_bytes = sizeof(uint64_t);
  if (element == GgufValueType::kArray) min_bytes = sizeof(uint32_t) + sizeof(uint64_t);
  if (count > cursor.remaining() / min_bytes) {
    cursor.Fail(key, "array extends past the end of the file (" + std::to_string(count) + " elements, " +
                         std::to_string(cursor.remaining()) + " bytes remain)");
  }
  return {element, count};
}

// Skips the elements of an array and of the arrays nested in it.
void SkipElements(GgufCursor& cursor, std::string_view key, ArrayHead head) {
  std::array<ArrayHead, kMaxArrayDepth> open;
  size_t depth = 0;
  open[depth++] = head;
  while (depth > 0) {
    ArrayHead& top = open[depth - 1];
    if (top.element == GgufValueType::kString) {
      for (; top.count > 0; --top.count) cursor.ReadString(key);
    } else if (top.element != GgufValueType::kArray) {
      cursor.ReadBytes(top.count * SizeOf(top.element), key);
      top.count = 0;
    }
    if (top.count == 0) {
      --depth;
      continue;
    }
    --top.count;
    if (depth == kMaxArrayDepth) {
      cursor.Fail(key, "arrays are nested too deeply (limit " + std::to_string(kMaxArrayDepth) + ")");
    }
    open[depth++] = ReadArrayHead(cursor, key);
  }
}

GgufValue ReadValue(GgufCursor& cursor, std::span<const std::byte> file, std::string_view key) {
  const auto type = cursor.Read<uint32_t>(key);
  if (type > static_cast<uint32_t>(GgufValueType::kFloat64)) {
    cursor.Fail(key, "unknown type (" + std::to_string(type) + ")");
  }
  GgufValue value;
  value.type = static_cast<GgufValueType>(type);
  if (value.type == GgufValueType::kString) {
    value.bytes = std::as_bytes(std::span(cursor.ReadString(key)));
  } else if (value.type == GgufValueType::kArray) {
    const ArrayHead head = ReadArrayHead(cursor, key);
    const uint64_t begin = cursor.position();
    SkipElements(cursor, key, head);
    value.element_type = head.element;
    value.count = head.count;
    value.bytes = file.subspan(begin, cursor.position() - begin);
  } else {
    value.bytes = cursor.ReadBytes(SizeOf(value.type), key);
  }
  return value;
}

uint64_t ReadCount(GgufCursor& cursor, std::string_view object, uint64_t min_bytes, uint64_t limit) {
  const auto count = cursor.Read<uint64_t>(object);
  if (count > limit)
    cursor.Fail(object, "too many (" + std::to_string(count) + ", limit " + std::to_string(limit) + ")");
  if (count > cursor.remaining() / min_bytes) {
    cursor.Fail(object, "more than the file can contain (" + std::to_string(count) + " in " +
                            std::to_string(cursor.remaining()) + " remaining bytes)");
  }
  return count;
}

struct TensorInfo {
  GgufTensor tensor;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

TensorInfo ReadTensor(GgufCursor& cursor) {
  TensorInfo info;
  const std::string_view name = cursor.ReadString("tensor name");
  if (name.empty() || name.size() > kMaxNameBytes) {
    cursor.Fail(
        "tensor " + std::string(name.substr(0, kMaxNameBytes)),
        "name must have 1 to " + std::to_string(kMaxNameBytes) + " bytes (" + std::to_string(name.size()) + ")");
  }
  const std::string object = "tensor " + std::string(name);
  info.tensor.name = name;
  const auto num_dimensions = cursor.Read<uint32_t>(object);
  if (num_dimensions < 1 || num_dimensions > kMaxDimensions) {
    cursor.Fail(object, "number of dimensions is outside 1 to " + std::to_string(kMaxDimensions) + " (" +
                            std::to_string(num_dimensions) + ")");
  }
  uint64_t elements = 1;
  for (uint32_t i = 0; i < num_dimensions; ++i) {
    const auto dimension = cursor.Read<uint64_t>(object);
    constexpr auto kLimit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    if (dimension < 1 || dimension > kLimit) {
      cursor.Fail(object, "dimension is outside 1 to 2^63 - 1 (" + std::to_string(dimension) + ")");
    }
    if (__builtin_mul_overflow(elements, dimension, &elements) || elements > kLimit) {
      cursor.Fail(object, "shape is too large (limit 2^63 - 1 elements)");
    }
    info.tensor.shape.insert(info.tensor.shape.begin(), static_cast<int64_t>(dimension));
  }
  const auto type = cursor.Read<uint32_t>(object);
  info.tensor.type = FindGgmlType(type);
  if (info.tensor.type == nullptr) {
    cursor.Fail(object, "unknown type (" + std::to_string(type) + ")",
                "nearest that runs: a file of the same model with Q4_K_M or Q8_0");
  }
  const uint64_t block = info.tensor.type->block_elements;
  if (static_cast<uint64_t>(info.tensor.shape.back()) % block != 0) {
    cursor.Fail(object, "row is not a whole number of " + std::string(info.tensor.type->name) + " blocks (" +
                            std::to_string(info.tensor.shape.back()) + " elements, " + std::to_string(block) +
                            " per block)");
  }
  if (__builtin_mul_overflow(elements / block, info.tensor.type->block_bytes, &info.bytes)) {
    cursor.Fail(object, "shape is too large (limit 2^64 - 1 bytes)");
  }
  info.offset = cursor.Read<uint64_t>(object);
  return info;
}

// Rounds `value` up to a multiple of `alignment`. Returns false if the result does not fit in 64 bits.
bool RoundUp(uint64_t alignment, uint64_t& value) {
  if (__builtin_add_overflow(value, alignment - 1, &value)) return false;
  value &= ~(alignment - 1);
  return true;
}

uint64_t ReadAlignment(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const std::optional<int64_t> alignment = metadata.Int(kKey, 1, std::numeric_limits<uint32_t>::max());
  if (!alignment) return 32;
  if (!std::has_single_bit(static_cast<uint64_t>(*alignment))) {
    metadata.Fail(kKey, "not a power of two (" + std::to_string(*alignment) + ")");
  }
  return static_cast<uint64_t>(*alignment);
}

void CheckNamesAreUnique(const GgufCursor& cursor, const std::vector<GgufTensor>& tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const GgufTensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto duplicate = std::adjacent_find(names.begin(), names.end());
  if (duplicate != names.end()) cursor.Fail("tensor " + std::string(*duplicate), "occurs twice");
}

void ReadVersion(GgufCursor& cursor, GgufHeader& header) {
  const auto magic = cursor.Read<std::array<char, 4>>("magic");
  if (std::string_view(magic.data(), magic.size()) != "GGUF") cursor.Fail("magic", "not a GGUF file");
  header.version = cursor.Read<uint32_t>("version");
  if (header.version != 0 && (header.version & 0xFFFF) == 0) {
    cursor.Fail("version", "big-endian files are not supported (" + std::to_string(header.version) + ")");
  }
  if (header.version < kMinVersion || header.version > kMaxVersion) {
    cursor.Fail("version", "not 2 or 3 (" + std::to_string(header.version) + ")");
  }
}

}  // namespace

int64_t GgufTensor::num_elements() const {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

GgufHeader ParseGguf(std::span<const std::byte> file, const std::string& path) {
  const std::string what = "gguf file " + Escape(path);
  GgufCursor cursor(file, what);
  GgufHeader header{.version = 0, .alignment = 32, .metadata = GgufMetadata(what), .tensors = {}};
  ReadVersion(cursor, header);
  const uint64_t num_tensors = ReadCount(cursor, "number of tensors", kMinTensorBytes, kMaxTensors);
  const uint64_t num_pairs = ReadCount(cursor, "number of keys", kMinPairBytes, kMaxPairs);
  for (uint64_t i = 0; i < num_pairs; ++i) {
    const std::string_view key = cursor.ReadString("key");
    if (key.empty() || key.size() > kMaxKeyBytes) {
      cursor.Fail("key number " + std::to_string(i + 1),
                  "must have 1 to " + std::to_string(kMaxKeyBytes) + " bytes (" + std::to_string(key.size()) + ")");
    }
    header.metadata.Add(key, ReadValue(cursor, file, key));
  }
  header.metadata.Sort();
  header.alignment = ReadAlignment(header.metadata);

  std::vector<TensorInfo> infos;
  for (uint64_t i = 0; i < num_tensors; ++i) infos.push_back(ReadTensor(cursor));
  uint64_t data_begin = cursor.position();
  if (!RoundUp(header.alignment, data_begin)) cursor.Fail("general.alignment", "too large");
  uint64_t expected = 0;
  header.tensors.reserve(infos.size());
  for (TensorInfo& info : infos) {
    const std::string object = "tensor " + std::string(info.tensor.name);
    if (info.offset != expected) {
      cursor.Fail(object, "data is not at the next aligned offset (" + std::to_string(info.offset) + ", must be " +
                              std::to_string(expected) + ")");
    }
    uint64_t end = 0;
    if (data_begin > file.size() || __builtin_add_overflow(info.offset, info.bytes, &end) ||
        end > file.size() - data_begin) {
      cursor.Fail(object, "data extends past the end of the file (" + std::to_string(info.bytes) + " bytes at offset " +
                              std::to_string(info.offset) + " of a data section of " +
                              std::to_string(file.size() - std::min<uint64_t>(data_begin, file.size())) + " bytes)");
    }
    info.tensor.data = file.subspan(data_begin + info.offset, info.bytes);
    expected = end;
    if (!RoundUp(header.alignment, expected)) cursor.Fail(object, "data extends past 2^64 bytes");
    header.tensors.push_back(std::move(info.tensor));
  }
  CheckNamesAreUnique(cursor, header.tensors);
  return header;
}

}  // namespace vllm
