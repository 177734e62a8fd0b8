#include "kernels/tuning/kernel_variants.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "kernels/isa/kernels_for.h"
#include "kernels/kernel_tables.h"
#include "kernels/matrix/packed_activations.h"
#include "kernels/matrix/packed_matrix.h"
#include "kernels/matrix/packed_quant_matrix.h"
#include "kernels/threading/check.h"

namespace vllm::kernels {

namespace {

constexpr int64_t kRows = 64, kOutputs = 192, kColumns = 896;
constexpr int kRounds = 8;
// A variant is used if it takes at most this part of the time of the first.
constexpr double kFaster = 0.97;

// In the order of the enumerators.
constexpr std::string_view kLoadsNames[] = {"single_loads", "quad_loads"};
constexpr std::string_view kPairsNames[] = {"dots", "fmas"};
constexpr std::string_view kPrefetchNames[] = {"no_prefetch", "prefetch"};

#if defined(__x86_64__)
struct Tables {
  TileKernels tiles;
  Kernels kernels;
};

template <const LinearQuantFunction& kSeveralRows>
void PrefetchForOneRow(const PackedActivationsView& x, const PackedQuantView& w, const float* bias, float* y,
                       int64_t y_stride, int64_t panel_begin, int64_t panel_end) {
  const LinearQuantFunction multiply = x.num_rows == 1 ? kAvx512VnniPrefetchLinearQuant : kSeveralRows;
  multiply(x, w, bias, y, y_stride, panel_begin, panel_end);
}

// Sets the tables of `isa` with `variants`. They contain each other's addresses.
void SetTables(Isa isa, const KernelVariants& variants, Tables& tables) {
  tables.kernels = KernelsFor(isa);
  tables.tiles = *tables.kernels.tiles;
  tables.kernels.tiles = &tables.tiles;
  if (variants.loads == UnitLoads::kQuad) {
    tables.tiles.linear_quant = variants.prefetch == OneRowPrefetch::kOn
                                    ? PrefetchForOneRow<kAvx512VnniQuadLoadsLinearQuant>
                                    : kAvx512VnniQuadLoadsLinearQuant;
  } else if (variants.prefetch == OneRowPrefetch::kOn) {
    tables.tiles.linear_quant = kAvx512VnniPrefetchLinearQuant;
  }
  if (variants.pairs == PairProducts::kFmas) {
    tables.tiles.pack_bfloat16 = kAvx512Bf16FmaTileKernels.pack_bfloat16;
    tables.tiles.linear_bfloat16 = kAvx512Bf16FmaTileKernels.linear_bfloat16;
    tables.tiles.bfloat16_columns_per_unit = kAvx512Bf16FmaTileKernels.bfloat16_columns_per_unit;
    tables.kernels.attention = &kAvx512Bf16FmaAttentionKernels;
  }
}
#endif

// Returns the time that multiply(variants) takes with `variants`, as a part of the time that it takes without.
template <typename F>
double PartOfTime(const KernelVariants& variants, const F& multiply) {
  const auto seconds = [&](const KernelVariants& with) {
    const auto begin = std::chrono::steady_clock::now();
    multiply(with);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  double least = std::numeric_limits<double>::infinity(), least_of_first = least;
  for (int round = 0; round < kRounds; ++round) {
    least_of_first = std::min(least_of_first, seconds({}));
    least = std::min(least, seconds(variants));
  }
  return least / least_of_first;
}

double PartOfTimeWithQuadLoads(Isa isa, const PackedQuantForm& form) {
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
  const TileKernels& tiles = *KernelsFor(isa).tiles;
  for (int64_t tile = 0; tile < NumTiles(kRows); ++tile) tiles.pack_int8(x.data(), kColumns, packed, tile);
  return PartOfTime({.loads = UnitLoads::kQuad}, [&](const KernelVariants& with) {
    KernelsFor(isa, with).tiles->linear_quant(packed, w, nullptr, y.data(), kOutputs, 0, w.num_panels());
  });
}

bool IsIntel() { return CpuModel().starts_with("GenuineIntel"); }

double PartOfTimeWithFmas(Isa isa) {
  PackedMatrix weight(kOutputs, kColumns, DType::kBFloat16);
  const std::vector<float> values(kOutputs * kColumns, 0.01f), x(kRows * kColumns, 0.25f);
  weight.PackRows(reinterpret_cast<const std::byte*>(values.data()), DType::kFloat32, kColumns * sizeof(float));
  std::vector<float> y(kRows * kOutputs);
  PackedActivations rows;
  return PartOfTime({.pairs = PairProducts::kFmas}, [&](const KernelVariants& with) {
    const TileKernels& tiles = *KernelsFor(isa, with).tiles;
    const PackedActivationsView packed =
        rows.BFloat16(kRows, kColumns, tiles.bfloat16_tile_rows, tiles.bfloat16_columns_per_unit);
    for (int64_t tile = 0; tile < packed.num_tiles(); ++tile) tiles.pack_bfloat16(x.data(), kColumns, packed, tile);
    tiles.linear_bfloat16(packed, weight.view(), nullptr, y.data(), kOutputs, 0, weight.view().num_panels());
  });
}

}  // namespace

std::string ToString(const KernelVariants& variants) {
  std::string text(kLoadsNames[static_cast<size_t>(variants.loads)]);
  text += ' ';
  text += kPairsNames[static_cast<size_t>(variants.pairs)];
  text += ' ';
  text += kPrefetchNames[static_cast<size_t>(variants.prefetch)];
  return text;
}

std::vector<KernelVariants> VariantsOf(Isa isa) {
  const bool has_others = isa == Isa::kAvx512Bf16 || isa == Isa::kAvx512Vnni;
  const bool has_fmas = isa == Isa::kAvx512Bf16 && IsIntel();
  std::vector<KernelVariants> all;
  for (const UnitLoads loads : {UnitLoads::kSingle, UnitLoads::kQuad}) {
    for (const PairProducts pairs : {PairProducts::kDots, PairProducts::kFmas}) {
      for (const OneRowPrefetch prefetch : {OneRowPrefetch::kOff, OneRowPrefetch::kOn}) {
        const KernelVariants variants{loads, pairs, prefetch};
        const bool has = has_others && (pairs == PairProducts::kDots || has_fmas);
        if (has || variants == KernelVariants()) all.push_back(variants);
      }
    }
  }
  return all;
}

std::optional<KernelVariants> ParseVariantsOf(Isa isa, std::string_view text) {
  for (const KernelVariants& variants : VariantsOf(isa)) {
    if (text == ToString(variants)) return variants;
  }
  return std::nullopt;
}

KernelVariants MeasureVariants(Isa isa) {
  constexpr PackedQuantForm kQ8_0 = {8, 32}, kQ4_K = {4, 32, true, 0, nullptr, true};
  KernelVariants fastest;
  const double quad = (PartOfTimeWithQuadLoads(isa, kQ8_0) + PartOfTimeWithQuadLoads(isa, kQ4_K)) / 2;
  if (quad <= kFaster) fastest.loads = UnitLoads::kQuad;
  if (isa == Isa::kAvx512Bf16 && IsIntel() && PartOfTimeWithFmas(isa) <= kFaster) fastest.pairs = PairProducts::kFmas;
  if (IsIntel()) fastest.prefetch = OneRowPrefetch::kOn;
  return fastest;
}

const Kernels& KernelsFor(Isa isa, const KernelVariants& variants) {
  if (variants == KernelVariants()) return KernelsFor(isa);
  const std::vector<KernelVariants> all = VariantsOf(isa);
  VLLM_CHECK(std::ranges::find(all, variants) != all.end());
#if defined(__x86_64__)
  static std::mutex mutex;
  static std::map<std::pair<Isa, KernelVariants>, Tables> tables;
  const std::lock_guard lock(mutex);
  const auto [it, is_new] = tables.try_emplace({isa, variants});
  if (is_new) SetTables(isa, variants, it->second);
  return it->second.kernels;
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
