#include "kernels/tuning/tile_shapes.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/isa/kernels_for.h"
#include "kernels/kernel_tables.h"
#include "kernels/matrix/packed_activations.h"
#include "kernels/matrix/packed_quant_matrix.h"
#include "kernels/threading/check.h"

namespace vllm::kernels {

namespace {

constexpr int64_t kRows = kMinRowsOfTwoPanels, kOutputs = 192, kColumns = 896;
constexpr int kRounds = 8;

// In the order of the enumerators of TileShape.
constexpr std::string_view kShapeNames[] = {"one_panel", "two_panels"};

#if defined(__x86_64__)
template <Isa kIsa>
void LinearQuantTwoPanels(const PackedActivationsView& x, const PackedQuantView& w, const float* bias, float* y,
                          int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  const bool has_many_rows = x.num_rows >= kMinRowsOfTwoPanels;
  (has_many_rows ? kAvx512VnniTwoPanelsLinearQuant : KernelsFor(kIsa).tiles->linear_quant)(x, w, bias, y, y_stride,
                                                                                           panel_begin, panel_end);
}

// The kernels of kIsa, with two panels for many rows.
template <Isa kIsa>
const Kernels& WithTwoPanels() {
  static const TileKernels tiles = [] {
    TileKernels copy = *KernelsFor(kIsa).tiles;
    copy.linear_quant = LinearQuantTwoPanels<kIsa>;
    return copy;
  }();
  static const Kernels kernels = [] {
    Kernels copy = KernelsFor(kIsa);
    copy.tiles = &tiles;
    return copy;
  }();
  return kernels;
}
#endif

// Multiplies one weight with each shape in turn, and adds the shortest times to `one` and `two`.
void AddSeconds(Isa isa, const PackedQuantForm& form, double& one, double& two) {
  PackedQuantMatrix weight(form, kOutputs, kColumns);
  const std::vector<uint8_t> codes(kColumns, 7);
  const std::vector<float> scales(kColumns, 0.01f);
  for (int64_t n = 0; n < kOutputs; ++n)
    weight.SetRow(n, {codes.data(), scales.data(), scales.data(), scales.data(), scales.data()});
  const std::vector<float> x(kRows * kColumns, 0.25f);
  std::vector<float> y(kRows * kOutputs);
  PackedActivations rows;
  const PackedQuantView& w = weight.view();
  const PackedActivationsView packed = rows.Int8(kRows, kColumns, w.code_sums());
  const TileKernels& tiles = *KernelsFor(isa, TileShape::kOnePanel).tiles;
  for (int64_t tile = 0; tile < NumTiles(kRows); ++tile) tiles.pack_int8(x.data(), kColumns, packed, tile);
  const auto seconds = [&](TileShape shape) {
    const auto begin = std::chrono::steady_clock::now();
    KernelsFor(isa, shape).tiles->linear_quant(packed, w, nullptr, y.data(), kOutputs, 0, w.num_panels());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double least_one = std::numeric_limits<double>::infinity(), least_two = least_one;
  for (int round = 0; round < kRounds; ++round) {
    least_one = std::min(least_one, seconds(TileShape::kOnePanel));
    least_two = std::min(least_two, seconds(TileShape::kTwoPanels));
  }
  one += least_one;
  two += least_two;
}

}  // namespace

std::string_view ToString(TileShape shape) { return kShapeNames[static_cast<size_t>(shape)]; }

std::optional<TileShape> ParseTileShape(std::string_view name) {
  const auto* it = std::find(std::begin(kShapeNames), std::end(kShapeNames), name);
  if (it == std::end(kShapeNames)) return std::nullopt;
  return static_cast<TileShape>(it - std::begin(kShapeNames));
}

bool HasTwoPanels(Isa isa) { return isa == Isa::kAvx512Vnni || isa == Isa::kAvx512Bf16; }

TileShape MeasureTileShape(Isa isa) {
  constexpr PackedQuantForm kQ8_0 = {8, 32}, kQ4_K = {4, 32, true, 0, nullptr, true};
  double one = 0.0, two = 0.0;
  for (const PackedQuantForm& form : {kQ8_0, kQ4_K}) AddSeconds(isa, form, one, two);
  return two < 0.97 * one ? TileShape::kTwoPanels : TileShape::kOnePanel;
}

const Kernels& KernelsFor(Isa isa, TileShape shape) {
  if (shape == TileShape::kOnePanel) return KernelsFor(isa);
  VLLM_CHECK(HasTwoPanels(isa));
#if defined(__x86_64__)
  return isa == Isa::kAvx512Vnni ? WithTwoPanels<Isa::kAvx512Vnni>() : WithTwoPanels<Isa::kAvx512Bf16>();
#else
  return KernelsFor(isa);
#endif
}

std::string CpuModel() {
  std::string model;
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return {};
  for (const unsigned part : {b, d, c}) {
    for (int byte = 0; byte < 4; ++byte) {
      const char letter = static_cast<char>(part >> (8 * byte));
      if ((letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z')) model += letter;
    }
  }
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return {};
  model += '-';
  for (int shift = 28; shift >= 0; shift -= 4) model += "0123456789abcdef"[a >> shift & 15];
#endif
  return model;
}

}  // namespace vllm::kernels
