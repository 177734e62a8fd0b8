#include "engine/model_loader/quantization/gptq_awq.h"

#include <algorithm>
#include <array>

#include "engine/model_loader/quantization/tensor.h"

namespace vllm {
namespace {

// Returns the code of `bits` bits that begins at bit `position` of a sequence of words, `stride` bytes apart.
uint32_t CodeAt(const std::byte* words, int64_t stride, int64_t position, int64_t bits) {
  const std::byte* word = words + position / 32 * stride;
  const int64_t shift = position % 32;
  uint64_t code = LoadWord(word) >> shift;
  if (shift + bits > 32) code |= uint64_t{LoadWord(word + stride)} << (32 - shift);
  return static_cast<uint32_t>(code & ((uint64_t{1} << bits) - 1));
}

// Lets `source` read the scales and the zero points of layer `name`, both [groups, out]. The zero points are packed:
// that of output n begins at bit position(n) of its group's words.
template <typename Position>
void SetScalesAndZeros(const WeightSource& weights, const std::string& name, int64_t num_groups, int64_t out,
                       int64_t bits, int32_t zero_offset, Position position, GroupSource& source) {
  const int64_t words = out * bits / 32;
  const TensorView scales = GetScales(weights, name + ".scales", {num_groups, out});
  const TensorView zeros = GetTyped(weights, name + ".qzeros", {num_groups, words}, kernels::WeightType::kInt32);
  source.scale_type = scales.dtype();
  const auto size = static_cast<int64_t>(SizeOf(source.scale_type));
  source.scale = [=](int64_t n, int64_t g) { return scales.data.data() + (g * out + n) * size; };
  source.zero = [=](int64_t n, int64_t g) {
    return static_cast<int32_t>(CodeAt(zeros.data.data() + g * words * 4, 4, position(n), bits)) + zero_offset;
  };
}

void CheckMultiple(const std::string& name, const char* what, int64_t size, int64_t multiple) {
  if (size % multiple == 0) return;
  RejectTensor(name + ".qweight", std::string(what) + " is not a multiple of " + std::to_string(multiple) + " (" +
                                      std::to_string(size) + ")");
}

}  // namespace

GroupSource OpenGptq(const WeightSource& weights, const QuantizationConfig& config, const std::string& name,
                     const MatrixRows& rows) {
  const QuantizationScheme& scheme = config.groups.at(0).scheme;
  const int64_t bits = scheme.bits, multiple = bits == 3 ? 32 : 32 / bits;
  const int64_t in = rows.in_features, out = rows.out_features;
  CheckMultiple(name, "in_features", in, multiple);
  CheckMultiple(name, "out_features", out, multiple);
  const int64_t num_groups = NumGroups(in, scheme.group_size);
  GroupSource source;
  source.format = bits <= 4 ? kernels::QuantFormat::kGroupUInt4 : kernels::QuantFormat::kGroupUInt8;
  source.group_of_column = weights.ShapeOf(name + ".g_idx") ? ReadGroupIndex(weights, name + ".g_idx", in, num_groups)
                                                            : RunsOfGroups(in, scheme.group_size);
  SetScalesAndZeros(
      weights, name, num_groups, out, bits, config.gptq_v2 ? 0 : 1, [bits](int64_t n) { return n * bits; }, source);
  const TensorView qweight = GetTyped(weights, name + ".qweight", {in * bits / 32, out}, kernels::WeightType::kInt32);
  source.codes = [=](int64_t row, int64_t count, uint8_t* codes) {
    for (int64_t k = 0; k < rows.in_features; ++k) {
      const std::byte* words = qweight.data.data() + row * 4;
      for (int64_t i = 0; i < count; ++i) {
        codes[i * rows.in_features + k] = static_cast<uint8_t>(CodeAt(words + i * 4, out * 4, k * bits, bits));
      }
    }
  };
  return source;
}

GroupSource OpenAwq(const WeightSource& weights, const QuantizationConfig& config, const std::string& name,
                    const MatrixRows& rows) {
  constexpr std::array<int64_t, 8> kFieldOfOutput = {0, 4, 1, 5, 2, 6, 3, 7};
  const auto lane = [kFieldOfOutput](int64_t n) { return kFieldOfOutput[static_cast<size_t>(n % 8)]; };
  const QuantizationScheme& scheme = config.groups.at(0).scheme;
  const int64_t in = rows.in_features, out = rows.out_features;
  CheckMultiple(name, "out_features", out, 8);
  GroupSource source;
  source.format = kernels::QuantFormat::kGroupUInt4;
  source.group_of_column = RunsOfGroups(in, scheme.group_size);
  const auto position = [lane](int64_t n) { return n / 8 * 32 + lane(n) * 4; };
  SetScalesAndZeros(weights, name, NumGroups(in, scheme.group_size), out, 4, 0, position, source);
  const TensorView qweight = GetTyped(weights, name + ".qweight", {in, out / 8}, kernels::WeightType::kInt32);
  source.codes = [=](int64_t row, int64_t count, uint8_t* codes) {
    for (int64_t k = 0; k < rows.in_features; ++k) {
      const std::byte* words = qweight.data.data() + k * (out / 8) * 4;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t n = row + i;
        codes[i * rows.in_features + k] = static_cast<uint8_t>((LoadWord(words + n / 8 * 4) >> (lane(n) * 4)) & 0x0f);
      }
    }
  };
  return source;
}

}  // namespace vllm
