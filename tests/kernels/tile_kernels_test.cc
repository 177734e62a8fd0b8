// Compares the tile kernels of every available instruction set with plain loops, over random shapes and strides. Also
// tests that a result does not depend on how the work is split.
#include "kernels/tile_kernels.h"
#include "kernels/isa/kernels_for.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_tables.h"
#include "kernels/kernels.h"
#include "kernels/tuning/kernel_variants.h"
#include "tests/support/random_values.h"

namespace vllm::kernels {

#if defined(__x86_64__)
extern const TileKernels kEvexAvx2VnniTileKernels;
extern const TileKernels kEmulatedAmxTileKernels;
#endif

namespace {

struct NamedTiles {
  std::string name;
  const TileKernels* tiles;
};
void PrintTo(const NamedTiles& tiles, std::ostream* out) { *out << tiles.name; }

#if defined(__x86_64__)
// The same kernels, but AMX multiplies int8 also where VNNI is faster.
TileKernels WithAmxForAnyRows(TileKernels tiles) {
  tiles.int8_tile_rows = [](int64_t /*num_rows*/, const CodeSums& code_sums) {
    return code_sums.columns == 16 ? kTileRows : kAmxTileRows;
  };
  return tiles;
}
#endif

// Returns the kernels of every instruction set that this CPU supports, also with each of their KernelVariants alone and
// with all of them. With avx512_bf16, these include the AVX-VNNI kernels in the AVX-512 encoding, and the AMX kernels
// with emulated registers.
std::vector<NamedTiles> AllTiles() {
  std::vector<NamedTiles> all;
  for (const Isa isa : AvailableIsas()) {
    const std::string name(ToString(isa));
    const std::vector<KernelVariants> variants = VariantsOf(isa);
    for (const KernelVariants& some : variants) {
      const bool quad = some.loads != UnitLoads(), fmas = some.pairs != PairProducts();
      const bool prefetch = some.prefetch != OneRowPrefetch();
      if (quad + fmas + prefetch > 1 && some != variants.back()) continue;
      all.push_back({name + (quad ? "_quad_loads" : "") + (fmas ? "_fmas" : "") + (prefetch ? "_prefetch" : ""),
                     KernelsFor(isa, some).tiles});
    }
  }
#if defined(__x86_64__)
  if (BestIsa() == Isa::kAvx512Bf16 || BestIsa() == Isa::kAvx512Amx) {
    all.push_back({"avx2_vnni_evex", &kEvexAvx2VnniTileKernels});
    static const TileKernels emulated = WithAmxForAnyRows(kEmulatedAmxTileKernels);
    all.push_back({"avx512_amx_emulated", &emulated});
  }
  const auto has = [&](std::string_view name) { return std::ranges::find(all, name, &NamedTiles::name) != all.end(); };
  if (has("avx512_amx")) {
    static const TileKernels any_rows = WithAmxForAnyRows(*KernelsFor(Isa::kAvx512Amx).tiles);
    all.push_back({"avx512_amx_any_rows", &any_rows});
  }
#endif
  return all;
}

class TileKernelsTest : public testing::TestWithParam<NamedTiles>, protected testing_support::RandomValues {
 protected:
  TileKernelsTest() : RandomValues(11) {}

  const TileKernels& kernels() const { return *GetParam().tiles; }
  PackedActivationsView Int8(const std::vector<float>& x, int64_t x_stride, int64_t num_rows,
                             const PackedQuantMatrix& w) {
    const PackedActivationsView view = tiles_.Int8(num_rows, w.view().num_columns, w.view().code_sums(),
                                                   kernels().Int8TileRows(num_rows, w.view().code_sums()));
    for (int64_t tile = 0; tile < view.num_tiles(); ++tile) kernels().pack_int8(x.data(), x_stride, view, tile);
    return view;
  }
  PackedActivationsView BFloat16(const std::vector<float>& x, int64_t x_stride, int64_t num_rows, int64_t num_columns) {
    const PackedActivationsView view =
        tiles_.BFloat16(num_rows, num_columns, kernels().bfloat16_tile_rows, kernels().bfloat16_columns_per_unit);
    for (int64_t tile = 0; tile < view.num_tiles(); ++tile) kernels().pack_bfloat16(x.data(), x_stride, view, tile);
    return view;
  }
  PackedActivations tiles_;
};

INSTANTIATE_TEST_SUITE_P(Isas, TileKernelsTest, testing::ValuesIn(AllTiles()),
                         [](const auto& tiles) { return tiles.param.name; });

// For instruction sets whose tile kernels multiply pairs of bfloat16. This CPU may support none of them.
class BFloat16TileKernelsTest : public TileKernelsTest {};

std::vector<NamedTiles> BFloat16Tiles() {
  std::vector<NamedTiles> tiles = AllTiles();
  std::erase_if(tiles, [](const NamedTiles& named) { return named.tiles->linear_bfloat16 == nullptr; });
  return tiles;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BFloat16TileKernelsTest);
INSTANTIATE_TEST_SUITE_P(Isas, BFloat16TileKernelsTest, testing::ValuesIn(BFloat16Tiles()),
                         [](const auto& tiles) { return tiles.param.name; });

PackedMatrix Pack(const std::vector<float>& w, int64_t rows, int64_t columns) {
  PackedMatrix packed(rows, columns, DType::kBFloat16);
  packed.PackRows(reinterpret_cast<const std::byte*>(w.data()), DType::kFloat32, columns * 4);
  return packed;
}

PackedQuantMatrix Quantize(const std::vector<float>& w, const PackedQuantForm& form, int64_t rows, int64_t columns) {
  PackedQuantMatrix packed(form, rows, columns);
  for (int64_t n = 0; n < rows; ++n) {
    packed.QuantizeRow(*KernelsFor(Isa::kGeneric).quant, n, w.data() + n * columns);
  }
  return packed;
}

constexpr PackedQuantForm kForms[] = {kInt8Form,
                                      kInt8RowForm,
                                      {8, 32},
                                      {8, 32, true},
                                      {5, 32, false, 16},
                                      {5, 32, true, 0},
                                      {6, 16, false, 32, nullptr, true},
                                      kInt4Form,
                                      {4, 32, false, 8},
                                      {4, 32, true, 8},
                                      {4, 32, true, 0},
                                      {4, 128, false, 8},
                                      {4, 128, true, 8},
                                      {5, 32, true, 0, nullptr, true},
                                      {4, 32, true, 0, nullptr, true},
                                      {4, 32, false, 128, kIQ4_NLLevels, true}};
constexpr int kNumForms = static_cast<int>(std::size(kForms));

// Returns a matrix with random codes, scales and minimums.
PackedQuantMatrix RandomCodes(std::mt19937& random, const PackedQuantForm& form, int64_t rows, int64_t columns) {
  PackedQuantMatrix packed(form, rows, columns);
  std::uniform_int_distribution<int> code(0, (1 << form.bits) - 1);
  std::normal_distribution<float> normal;
  std::vector<uint8_t> codes(static_cast<size_t>(columns));
  const auto num_scales = static_cast<size_t>(packed.view().num_scales());
  const auto num_supers = static_cast<size_t>(packed.view().num_supers());
  std::vector<float> scales(num_scales), minimums(num_scales), super_scales(num_supers), super_minimums(num_supers);
  std::uniform_int_distribution<int> integer(-128, 127);
  for (int64_t n = 0; n < rows; ++n) {
    for (uint8_t& value : codes) value = static_cast<uint8_t>(code(random));
    for (float& value : scales) value = normal(random) / 100.0f;
    for (float& value : minimums) value = normal(random);
    if (form.has_super_scales) {
      for (float& value : scales) value = static_cast<float>(integer(random));
      for (float& value : minimums) value = static_cast<float>(integer(random));
      for (float& value : super_scales) value = normal(random) / 10000.0f;
      for (float& value : super_minimums) value = normal(random) / 100.0f;
    }
    packed.SetRow(n, {codes.data(), scales.data(), minimums.data(), super_scales.data(), super_minimums.data()});
  }
  return packed;
}

TEST_P(BFloat16TileKernelsTest, BFloat16AgreesWithThePlainLoop) {
  for (int round = 0; round < 400; ++round) {
    const int64_t num_rows = Int(0, 30), out = Int(1, 170), in = round % 10 == 0 ? Int(1000, 2500) : Int(0, 300);
    const int64_t x_stride = in + Int(0, 5), y_stride = out + Int(0, 5);
    const std::vector<float> x = Floats(num_rows * x_stride + 1), bias = Floats(out);
    const PackedMatrix w = Pack(Floats(out * in), out, in);
    const bool with_bias = round % 2 == 0;
    std::vector<float> y(static_cast<size_t>(num_rows * y_stride + 1), -77.0f);
    const PackedActivationsView tiles = BFloat16(x, x_stride, num_rows, in);
    kernels().linear_bfloat16(tiles, w.view(), with_bias ? bias.data() : nullptr, y.data(), y_stride, 0,
                              w.view().num_panels());
    std::vector<double> rounded;
    for (const float value : x) rounded.push_back(BFloat16ToFloat(FloatToBFloat16(value)));
    std::vector<float> row(static_cast<size_t>(in));
    for (int64_t n = 0; n < out; ++n) {
      w.UnpackRow(n, row.data());
      for (int64_t r = 0; r < num_rows; ++r) {
        double sum = with_bias ? bias[static_cast<size_t>(n)] : 0.0, magnitude = 1.0;
        for (int64_t k = 0; k < in; ++k) {
          const double product = rounded[static_cast<size_t>(r * x_stride + k)] * row[static_cast<size_t>(k)];
          sum += product;
          magnitude += std::abs(product);
        }
        ASSERT_NEAR(y[static_cast<size_t>(r * y_stride + n)], sum, magnitude * 1e-6)
            << out << "x" << in << " row " << r << " of " << num_rows;
      }
    }
    for (int64_t r = 0; r < num_rows; ++r) {
      for (int64_t n = out; n < y_stride; ++n) ASSERT_EQ(y[static_cast<size_t>(r * y_stride + n)], -77.0f);
    }
  }
}

// A value of x after rounding to one of the int8 codes. If it was halfway between two codes, either is correct, and
// `uncertainty` is their difference. Otherwise it is zero.
struct RoundedValue {
  double value, uncertainty;
};

// Rounds a row of x, with one scale for each scale_columns columns.
std::vector<RoundedValue> RoundedToInt8(std::span<const float> x, int64_t scale_columns) {
  std::vector<RoundedValue> rounded;
  for (size_t begin = 0; begin < x.size(); begin += static_cast<size_t>(scale_columns)) {
    const std::span<const float> group =
        x.subspan(begin, std::min(static_cast<size_t>(scale_columns), x.size() - begin));
    float largest = 0.0f;
    for (const float value : group) largest = std::max(largest, std::abs(value));
    const double step = static_cast<double>(largest) / 127.0;
    for (const float value : group) {
      const double code = std::nearbyint(static_cast<double>(value) / largest * 127.0);
      const bool is_halfway = std::abs(std::abs(value / largest * 127.0 - code) - 0.5) < 1e-4;
      rounded.push_back({code * largest / 127.0, is_halfway ? step : 0.0});
    }
  }
  return rounded;
}

TEST_P(TileKernelsTest, QuantAgreesWithThePlainLoop) {
  for (int round = 0; round < 100 * kNumForms; ++round) {
    const int iteration = round / kNumForms;
    const int64_t num_rows = Int(0, 30), out = Int(1, 170), in = iteration % 10 == 0 ? Int(960, 2300) : Int(0, 300);
    const int64_t x_stride = in + Int(0, 5), y_stride = out + Int(0, 5);
    const std::vector<float> x = Floats(num_rows * x_stride + 1), bias = Floats(out);
    const PackedQuantMatrix w = RandomCodes(random_, kForms[round % kNumForms], out, in);
    const bool with_bias = iteration % 2 == 0;
    std::vector<float> y(static_cast<size_t>(num_rows * y_stride + 1), -77.0f);
    const PackedActivationsView tiles = Int8(x, x_stride, num_rows, w);
    kernels().linear_quant(tiles, w.view(), with_bias ? bias.data() : nullptr, y.data(), y_stride, 0,
                           w.view().num_panels());
    std::vector<std::vector<RoundedValue>> rounded;
    for (int64_t r = 0; r < num_rows; ++r) {
      rounded.push_back(RoundedToInt8({x.data() + r * x_stride, static_cast<size_t>(in)}, tiles.scale_columns()));
    }
    std::vector<float> row(static_cast<size_t>(in));
    for (int64_t n = 0; n < out; ++n) {
      w.UnpackRow(n, row.data());
      for (int64_t r = 0; r < num_rows; ++r) {
        double sum = with_bias ? bias[static_cast<size_t>(n)] : 0.0, magnitude = 1.0, uncertainty = 0.0;
        for (size_t k = 0; k < row.size(); ++k) {
          const RoundedValue& value = rounded[static_cast<size_t>(r)][k];
          const double product = value.value * row[k];
          sum += product;
          magnitude += std::abs(product);
          uncertainty += value.uncertainty * std::abs(row[k]);
        }
        ASSERT_NEAR(y[static_cast<size_t>(r * y_stride + n)], sum, magnitude * 1e-6 + uncertainty)
            << out << "x" << in << " row " << r << " of " << num_rows;
      }
    }
    for (int64_t r = 0; r < num_rows; ++r) {
      for (int64_t n = out; n < y_stride; ++n) ASSERT_EQ(y[static_cast<size_t>(r * y_stride + n)], -77.0f);
    }
  }
}

TEST_P(TileKernelsTest, ResultsAreBitIdenticalForAnyNumberOfRowsAndSplitOfPanels) {
  const int64_t out = 16 * 19 + 5, in = 2112, num_rows = 37;
  const std::vector<float> x = Floats(num_rows * in), weights = Floats(out * in), bias = Floats(out);
  const PackedMatrix plain = Pack(weights, out, in);
  for (int kind = 0; kind <= kNumForms; ++kind) {
    const bool is_plain = kind == kNumForms;
    if (is_plain && kernels().linear_bfloat16 == nullptr) continue;
    const PackedQuantMatrix quant = RandomCodes(random_, kForms[kind % kNumForms], out, in);
    const int64_t num_panels = quant.view().num_panels();
    const auto multiply = [&](const PackedActivationsView& tiles, float* y, int64_t panel, int64_t end) {
      if (is_plain) {
        kernels().linear_bfloat16(tiles, plain.view(), bias.data(), y, out, panel, end);
      } else {
        kernels().linear_quant(tiles, quant.view(), bias.data(), y, out, panel, end);
      }
    };
    const auto pack = [&](const std::vector<float>& rows, int64_t count) {
      return is_plain ? BFloat16(rows, in, count, in) : Int8(rows, in, count, quant);
    };
    std::vector<float> all(static_cast<size_t>(num_rows * out));
    multiply(pack(x, num_rows), all.data(), 0, num_panels);
    for (int round = 0; round < 40; ++round) {
      const int64_t first = Int(0, num_rows - 1);
      const int64_t count = std::min(num_rows - first, round < 20 ? Int(1, 4) : Int(1, num_rows));
      const std::vector<float> rows(x.begin() + first * in, x.begin() + (first + count) * in);
      const PackedActivationsView tiles = pack(rows, count);
      std::vector<float> some(static_cast<size_t>(count * out));
      for (int64_t panel = 0; panel < num_panels;) {
        const int64_t end = std::min(num_panels, panel + Int(1, 11));
        multiply(tiles, some.data(), panel, end);
        panel = end;
      }
      for (int64_t i = 0; i < count * out; ++i)
        ASSERT_EQ(some[static_cast<size_t>(i)], all[static_cast<size_t>(first * out + i)]) << kind << " " << count;
    }
  }
}

// The sums of products are exact and the float sums have one order, so the tiles and the instructions do not matter.
TEST(SameBitsTest, KernelsWithDotProductsOfInt8GiveTheSameBits) {
  std::vector<NamedTiles> same = AllTiles();
  std::erase_if(same, [](const NamedTiles& named) { return !named.name.starts_with("avx512"); });
  std::mt19937 random{17};
  std::normal_distribution<float> normal;
  for (int round = 0; round < 12 * kNumForms; ++round) {
    const PackedQuantForm& form = kForms[round % kNumForms];
    const auto pick = [&random](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const int64_t num_rows = pick(1, 128), out = pick(1, 100), in = pick(1, 1300);
    std::vector<float> x(static_cast<size_t>(num_rows * in)), expected;
    for (float& value : x) value = normal(random);
    const PackedQuantMatrix w = RandomCodes(random, form, out, in);
    for (const NamedTiles& named : same) {
      PackedActivations packed;
      const PackedActivationsView tiles =
          packed.Int8(num_rows, in, w.view().code_sums(), named.tiles->Int8TileRows(num_rows, w.view().code_sums()));
      for (int64_t tile = 0; tile < tiles.num_tiles(); ++tile) named.tiles->pack_int8(x.data(), in, tiles, tile);
      std::vector<float> y(static_cast<size_t>(num_rows * out));
      named.tiles->linear_quant(tiles, w.view(), nullptr, y.data(), out, 0, w.view().num_panels());
      if (expected.empty()) expected = y;
      ASSERT_EQ(y, expected) << named.name << ", " << num_rows << " rows, " << out << "x" << in;
    }
  }
}

// Two FMAs give what vdpbf16ps does, also with denormal numbers, infinities and NaN.
TEST(SameBitsTest, FmasGiveTheBitsOfDotProductsOfBFloat16) {
  const std::vector<NamedTiles> all = AllTiles();
  const auto with_fmas = std::ranges::find(all, "avx512_bf16_fmas", &NamedTiles::name);
  if (with_fmas == all.end()) return;  // this CPU has nothing to compare
  const TileKernels &dots = *KernelsFor(Isa::kAvx512Bf16).tiles, &fmas = *with_fmas->tiles;
  ASSERT_NE(dots.linear_bfloat16, fmas.linear_bfloat16);
  std::mt19937 random{19};
  std::normal_distribution<float> normal;
  for (int round = 0; round < 400; ++round) {
    const auto pick = [&random](int64_t low, int64_t high) {
      return std::uniform_int_distribution<int64_t>(low, high)(random);
    };
    const int64_t num_rows = pick(1, 40), out = pick(1, 70), in = pick(1, 300);
    // In every second round, products are near the smallest normal number, 2^-126.
    const float factor = round % 2 == 0 ? 1.0f : 0x1p-63f;
    const auto values = [&](int64_t count) {
      std::vector<float> drawn(static_cast<size_t>(count));
      for (float& value : drawn) {
        value = normal(random) * factor;
        const int64_t kind = pick(0, 2000);
        if (kind == 0) value = std::numeric_limits<float>::infinity();
        if (kind == 1) value = std::numeric_limits<float>::quiet_NaN();
        if (kind == 2) value = 0x1p-130f;
        if (kind == 3) value = -0.0f;
      }
      return drawn;
    };
    const std::vector<float> x = values(num_rows * in), bias = values(out);
    const PackedMatrix w = Pack(values(out * in), out, in);
    const auto multiply = [&](const TileKernels& kernels) {
      PackedActivations packed;
      const PackedActivationsView tiles =
          packed.BFloat16(num_rows, in, kernels.bfloat16_tile_rows, kernels.bfloat16_columns_per_unit);
      for (int64_t tile = 0; tile < tiles.num_tiles(); ++tile) kernels.pack_bfloat16(x.data(), in, tiles, tile);
      std::vector<float> y(static_cast<size_t>(num_rows * out));
      kernels.linear_bfloat16(tiles, w.view(), bias.data(), y.data(), out, 0, w.view().num_panels());
      return y;
    };
    const std::vector<float> expected = multiply(dots), y = multiply(fmas);
    for (size_t i = 0; i < y.size(); ++i) {
      if (std::isnan(expected[i]) && std::isnan(y[i])) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(expected[i])) << "round " << round << ", " << i;
    }
  }
}

// AMX kernels write results of this size past the caches.
TEST_P(TileKernelsTest, LargeResultsAreThoseOfTheirRows) {
  const int64_t out = 4096, in = 64, num_rows = 160, some_rows = 30;
  const std::vector<float> x = Floats(num_rows * in), weights = Floats(out * in), bias = Floats(out);
  const PackedMatrix plain = Pack(weights, out, in);
  for (int kind = 0; kind < 3; ++kind) {
    const bool is_plain = kind == 2;
    if (is_plain && kernels().linear_bfloat16 == nullptr) continue;
    const PackedQuantMatrix quant = RandomCodes(random_, kForms[kind], out, in);
    const auto multiply = [&](int64_t first, int64_t count, float* y) {
      const std::vector<float> rows(x.begin() + first * in, x.begin() + (first + count) * in);
      if (is_plain) {
        const PackedActivationsView tiles = BFloat16(rows, in, count, in);
        kernels().linear_bfloat16(tiles, plain.view(), bias.data(), y, out, 0, plain.view().num_panels());
      } else {
        const PackedActivationsView tiles = Int8(rows, in, count, quant);
        kernels().linear_quant(tiles, quant.view(), bias.data(), y, out, 0, quant.view().num_panels());
      }
    };
    const AlignedBuffer all(static_cast<size_t>(num_rows * out) * sizeof(float));
    multiply(0, num_rows, all.as<float>());
    std::vector<float> some(static_cast<size_t>(some_rows * out));
    multiply(num_rows - some_rows, some_rows, some.data());
    const float* const last = all.as<float>() + (num_rows - some_rows) * out;
    ASSERT_TRUE(std::equal(some.begin(), some.end(), last)) << kind;
  }
}

// AMX kernels multiply many long rows in groups of rows, runs of panels and blocks of columns.
TEST_P(TileKernelsTest, ManyLongRowsGiveTheBitsOfFewRows) {
  struct Shape {
    int64_t num_rows, out, in;
  };
  for (const Shape& shape : {Shape{250, 16 * 33 + 5, 2110}, Shape{300, 16 * 3 + 5, 4210}}) {
    const int64_t num_rows = shape.num_rows, out = shape.out, in = shape.in;
    const std::vector<float> x = Floats(num_rows * in), bias = Floats(out);
    const PackedMatrix plain = Pack(Floats(out * in), out, in);
    for (const PackedQuantForm* form :
         {&kInt8RowForm, &kInt8Form, &kInt4Form, static_cast<const PackedQuantForm*>(nullptr)}) {
      if (form == nullptr && kernels().linear_bfloat16 == nullptr) continue;
      const PackedQuantMatrix quant = RandomCodes(random_, form == nullptr ? kInt8Form : *form, out, in);
      const auto multiply = [&](int64_t first, int64_t count) {
        const std::vector<float> rows(x.begin() + first * in, x.begin() + (first + count) * in);
        std::vector<float> y(static_cast<size_t>(count * out));
        if (form == nullptr) {
          const PackedActivationsView tiles = BFloat16(rows, in, count, in);
          kernels().linear_bfloat16(tiles, plain.view(), bias.data(), y.data(), out, 0, plain.view().num_panels());
        } else {
          const PackedActivationsView tiles = Int8(rows, in, count, quant);
          kernels().linear_quant(tiles, quant.view(), bias.data(), y.data(), out, 0, quant.view().num_panels());
        }
        return y;
      };
      const std::vector<float> all = multiply(0, num_rows);
      for (const int64_t first : {int64_t{0}, num_rows / 2, num_rows - 20}) {
        const std::vector<float> some = multiply(first, 20);
        ASSERT_TRUE(std::equal(some.begin(), some.end(), all.begin() + first * out))
            << out << "x" << in << " row " << first;
      }
    }
  }
}

// Some kernels keep partial sums in sixteen bits.
TEST_P(TileKernelsTest, SmallestAndLargestCodesDoNotOverflow) {
  const int64_t in = 256, out = 16;
  for (const PackedQuantForm& form : kForms) {
    for (const int code : {0, (1 << form.bits) - 1}) {
      PackedQuantMatrix w(form, out, in);
      const std::vector<uint8_t> codes(static_cast<size_t>(in), static_cast<uint8_t>(code));
      const std::vector<float> ones(static_cast<size_t>(in), 1.0f), nothing(static_cast<size_t>(in));
      for (int64_t n = 0; n < out; ++n)
        w.SetRow(n, {codes.data(), ones.data(), nothing.data(), ones.data(), nothing.data()});
      std::vector<float> row(static_cast<size_t>(in));
      w.UnpackRow(0, row.data());
      for (const float sign : {-1.0f, 1.0f}) {
        for (const int64_t num_rows : {1, 2, 5, 12}) {
          const std::vector<float> x(static_cast<size_t>(num_rows * in), sign * 127.0f);
          std::vector<float> y(static_cast<size_t>(num_rows * out));
          kernels().linear_quant(Int8(x, in, num_rows, w), w.view(), nullptr, y.data(), out, 0, 1);
          for (const float value : y) ASSERT_EQ(value, sign * 127.0f * static_cast<float>(in) * row[0]) << form.bits;
        }
      }
    }
  }
}

// A row with one scale is a single sum.
TEST_P(TileKernelsTest, LongestRowWithOneScaleDoesNotOverflow) {
  const int64_t in = kRowColumns, out = 16, num_rows = 13;
  for (const uint8_t code : {uint8_t{0}, uint8_t{255}}) {
    PackedQuantMatrix w(kInt8RowForm, out, in);
    const std::vector<uint8_t> codes(static_cast<size_t>(in), code);
    const float one = 1.0f;
    for (int64_t n = 0; n < out; ++n) w.SetRow(n, {codes.data(), &one});
    for (const float sign : {-1.0f, 1.0f}) {
      const std::vector<float> x(static_cast<size_t>(num_rows * in), sign * 127.0f);
      std::vector<float> y(static_cast<size_t>(num_rows * out));
      kernels().linear_quant(Int8(x, in, num_rows, w), w.view(), nullptr, y.data(), out, 0, 1);
      for (const float value : y) ASSERT_EQ(value, sign * 127.0f * 65536.0f * static_cast<float>(code - 128));
    }
  }
}

TEST_P(TileKernelsTest, WithoutColumnsTheResultIsTheBias) {
  const int64_t out = 20, num_rows = 14;
  const std::vector<float> bias = Floats(out), x(1);
  std::vector<float> y(static_cast<size_t>(num_rows * out));
  const auto check = [&] {
    for (size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], bias[i % static_cast<size_t>(out)]);
    std::fill(y.begin(), y.end(), -77.0f);
  };
  for (const PackedQuantForm& form : kForms) {
    const PackedQuantMatrix w(form, out, 0);
    kernels().linear_quant(Int8(x, 0, num_rows, w), w.view(), bias.data(), y.data(), out, 0, w.view().num_panels());
    check();
  }
  if (kernels().linear_bfloat16 == nullptr) return;
  const PackedMatrix w(out, 0, DType::kBFloat16);
  kernels().linear_bfloat16(BFloat16(x, 0, num_rows, 0), w.view(), bias.data(), y.data(), out, 0,
                            w.view().num_panels());
  check();
}

TEST_P(TileKernelsTest, NonFiniteRowsGiveNonFiniteResults) {
  const int64_t in = 320, out = 20;
  for (const PackedQuantForm& form : {kInt8Form, kInt8RowForm}) {
    const PackedQuantMatrix w = RandomCodes(random_, form, out, in);
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x = Floats(3 * in), y(static_cast<size_t>(3 * out));
      x[static_cast<size_t>(in + Int(0, in - 1))] = bad;
      kernels().linear_quant(Int8(x, in, 3, w), w.view(), nullptr, y.data(), out, 0, w.view().num_panels());
      for (size_t n = 0; n < static_cast<size_t>(out); ++n) {
        EXPECT_TRUE(std::isfinite(y[n]));
        EXPECT_FALSE(std::isfinite(y[n + static_cast<size_t>(out)]));
        EXPECT_TRUE(std::isfinite(y[n + static_cast<size_t>(2 * out)]));
      }
    }
  }
}

TEST_P(TileKernelsTest, TinyInputsDoNotOverflow) {
  const int64_t in = 64, out = 3;
  for (const PackedQuantForm& form : {kInt8Form, kInt8RowForm}) {
    const PackedQuantMatrix w = RandomCodes(random_, form, out, in);
    for (const float tiny : {0.0f, 1e-45f, 1e-38f, 1e-36f}) {
      const std::vector<float> x(static_cast<size_t>(in), tiny);
      std::vector<float> y(static_cast<size_t>(out));
      kernels().linear_quant(Int8(x, in, 1, w), w.view(), nullptr, y.data(), out, 0, 1);
      for (const float value : y) EXPECT_LE(std::abs(value), 1e-33f);
    }
  }
}

TEST(PackedQuantMatrixTest, EightBitWeightsAreWithinAboutHalfAStep) {
  std::mt19937 random{3};
  std::normal_distribution<float> normal;
  for (const int64_t columns : {1, 31, 64, 128, 300}) {
    const int64_t rows = 19;
    std::vector<float> w(static_cast<size_t>(rows * columns)), row(static_cast<size_t>(columns));
    for (float& value : w) value = normal(random);
    const PackedQuantMatrix packed = Quantize(w, kInt8Form, rows, columns);
    for (int64_t n = 0; n < rows; ++n) {
      packed.UnpackRow(n, row.data());
      for (int64_t k = 0; k < columns; ++k) {
        const int64_t begin = k / kScaleColumns * kScaleColumns;
        float largest = 0.0f;
        for (int64_t i = begin; i < std::min(columns, begin + kScaleColumns); ++i) {
          largest = std::max(largest, std::abs(w[static_cast<size_t>(n * columns + i)]));
        }
        // The bound is above half a step, because the scale is rounded to float16 too.
        ASSERT_NEAR(row[static_cast<size_t>(k)], w[static_cast<size_t>(n * columns + k)], largest / 127.0f * 0.57f);
      }
    }
  }
}

TEST(PackedQuantMatrixTest, FourBitWeightsEqualIQ4NLBlocks) {
  std::mt19937 random{5};
  std::normal_distribution<float> normal;
  const int64_t rows = 37, columns = 96;
  const QuantKernels& quant = *KernelsFor(Isa::kGeneric).quant;
  std::vector<float> w(static_cast<size_t>(rows * columns));
  for (float& value : w) value = normal(random);
  const PackedQuantMatrix packed = Quantize(w, kInt4Form, rows, columns);
  CheckpointQuantMatrix stored(QuantFormat::kIQ4_NL, rows, columns);
  std::vector<float> expected(static_cast<size_t>(columns)), row(static_cast<size_t>(columns));
  for (int64_t n = 0; n < rows; ++n) {
    quant.quantize_iq4_nl(w.data() + n * columns, columns, stored.row(n));
    quant.dequantize(stored.view(), n, 0, columns, expected.data());
    packed.UnpackRow(n, row.data());
    EXPECT_EQ(row, expected) << n;
  }
}

TEST(PackedQuantMatrixTest, TinyRowsBecomeZeroAndHugeOrNonFiniteRowsDoNotCrash) {
  for (const float value :
       {0.0f, 1e-30f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e30f}) {
    const std::vector<float> w(64, value);
    for (const PackedQuantForm& form : {kInt8Form, kInt4Form}) {
      const PackedQuantMatrix packed = Quantize(w, form, 1, 64);
      std::vector<float> row(64);
      packed.UnpackRow(0, row.data());
      if (std::abs(value) < 1e-20f) {
        EXPECT_EQ(row, std::vector<float>(64, 0.0f));
      }
    }
  }
}

}  // namespace
}  // namespace vllm::kernels
