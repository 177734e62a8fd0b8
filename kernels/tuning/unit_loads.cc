#include "kernels/tuning/unit_loads.h"

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

constexpr int64_t kRows = 64, kOutputs = 192, kColumns = 896;
constexpr int kRounds = 8;

// In the order of the enumerators of UnitLoads.
constexpr std::string_view kNames[] = {"single_loads", "quad_loads"};

#if defined(__x86_64__)
// The kernels of kIsa, with kQuad.
template <Isa kIsa>
const Kernels& WithQuadLoads() {
  static const TileKernels tiles = [] {
    TileKernels copy = *KernelsFor(kIsa).tiles;
    copy.linear_quant = kAvx512VnniQuadLoadsLinearQuant;
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

// Multiplies one weight in both ways in turn, and adds the shortest times to `single` and `quad`.
void AddSeconds(Isa isa, const PackedQuantForm& form, double& single, double& quad) {
  PackedQuantMatrix weight(form, kOutputs, kColumns);
  const std::vector<uint8_t> codes(kColumns, 7);
  const std::vector<float> scales(kColumns, 0.01f);
  for (int64_t n = 0; n < kOutputs; ++n)
    weight.SetRow(n, {codes.data(), scales.data(), scales.data(), scales.data(), scales.data()});
  const std::vector<float> x(kRows * kColumns, 0.25f);
  std::vector<float> y(kRows * kOutputs);
  PackedActivations rows;
  const PackedQuantView& w = weight.view();
  const PackedActivationsView packed = rows.Int8(kRows, kColumns, w.code_sums(), kTileRows);
  const TileKernels& tiles = *KernelsFor(isa, UnitLoads::kSingle).tiles;
  for (int64_t tile = 0; tile < NumTiles(kRows); ++tile) tiles.pack_int8(x.data(), kColumns, packed, tile);
  const auto seconds = [&](UnitLoads loads) {
    const auto begin = std::chrono::steady_clock::now();
    KernelsFor(isa, loads).tiles->linear_quant(packed, w, nullptr, y.data(), kOutputs, 0, w.num_panels());
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double least_single = std::numeric_limits<double>::infinity(), least_quad = least_single;
  for (int round = 0; round < kRounds; ++round) {
    least_single = std::min(least_single, seconds(UnitLoads::kSingle));
    least_quad = std::min(least_quad, seconds(UnitLoads::kQuad));
  }
  single += least_single;
  quad += least_quad;
}

}  // namespace

std::string_view ToString(UnitLoads loads) { return kNames[static_cast<size_t>(loads)]; }

std::optional<UnitLoads> ParseUnitLoads(std::string_view name) {
  const auto* it = std::find(std::begin(kNames), std::end(kNames), name);
  if (it == std::end(kNames)) return std::nullopt;
  return static_cast<UnitLoads>(it - std::begin(kNames));
}

bool HasQuadLoads(Isa isa) { return isa == Isa::kAvx512Vnni || isa == Isa::kAvx512Bf16; }

UnitLoads MeasureUnitLoads(Isa isa) {
  constexpr PackedQuantForm kQ8_0 = {8, 32}, kQ4_K = {4, 32, true, 0, nullptr, true};
  double single = 0.0, quad = 0.0;
  for (const PackedQuantForm& form : {kQ8_0, kQ4_K}) AddSeconds(isa, form, single, quad);
  return quad < 0.97 * single ? UnitLoads::kQuad : UnitLoads::kSingle;
}

const Kernels& KernelsFor(Isa isa, UnitLoads loads) {
  if (loads == UnitLoads::kSingle) return KernelsFor(isa);
  VLLM_CHECK(HasQuadLoads(isa));
#if defined(__x86_64__)
  return isa == Isa::kAvx512Vnni ? WithQuadLoads<Isa::kAvx512Vnni>() : WithQuadLoads<Isa::kAvx512Bf16>();
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
