// Compares linear layers with quantized weights to a reference that dequantizes the whole matrix and multiplies in
// double precision. Layers have random sizes and groups, and are split into shards at random rows and columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/config/errors.h"
#include "engine/executor/rank_group.h"
#include "engine/layers/linear/linear.h"
#include "engine/layers/linear/vocab_embedding.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/kernels.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/memory_weights.h"
#include "tests/support/random_values.h"

namespace vllm {
namespace {

using testing_support::MemoryWeights;

struct Matrix {
  int64_t rows = 0, columns = 0;
  std::vector<double> values;
  double& at(int64_t n, int64_t k) { return values[static_cast<size_t>(n * columns + k)]; }
};

// Packs the codes of each row of a [rows, columns] tensor into 32-bit words, with the first code in the lowest bits.
std::vector<int32_t> PackWords(const std::vector<int64_t>& codes, int64_t rows, int64_t columns, int64_t bits) {
  const int64_t per_word = 32 / bits, words = (columns + per_word - 1) / per_word;
  std::vector<int32_t> packed(static_cast<size_t>(rows * words));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t w = 0; w < words; ++w) {
      uint32_t word = 0;
      for (int64_t j = 0; j < per_word && w * per_word + j < columns; ++j) {
        word |= static_cast<uint32_t>(codes[static_cast<size_t>(i * columns + w * per_word + j)]) << (j * bits);
      }
      packed[static_cast<size_t>(i * words + w)] = static_cast<int32_t>(word);
    }
  }
  return packed;
}

std::vector<int64_t> Transposed(const std::vector<int64_t>& values, int64_t rows, int64_t columns) {
  std::vector<int64_t> result(values.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      result[static_cast<size_t>(j * rows + i)] = values[static_cast<size_t>(i * columns + j)];
    }
  }
  return result;
}

class QuantLinearTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  QuantLinearTest() : RandomValues(3) {
    step_ = {&kernels::KernelsFor(kernels::BestIsa()), &threads_, &communicator_, &workspace_};
  }

  std::vector<int64_t> Ints(int64_t count, int64_t low, int64_t high) {
    std::vector<int64_t> values(static_cast<size_t>(count));
    for (int64_t& value : values) value = Int(low, high);
    return values;
  }

  // Codes, scales and zero points of a layer [out, in], and the matrix that they represent.
  struct Layer {
    int64_t out, in, bits, group_size, num_groups;
    std::vector<int64_t> codes, zeros, group_of_column;
    std::vector<uint16_t> scales;  // float16 [out, num_groups]
    Matrix matrix;
  };
  Layer MakeLayer(int64_t bits, bool permuted) {
    Layer layer;
    layer.bits = bits;
    layer.out = 8 * Int(1, 8);
    layer.in = 8 * Int(1, 24);
    layer.group_size = Int(0, 3) == 0 ? -1 : 8 * Int(1, 8);
    const int64_t run = layer.group_size < 0 ? layer.in : layer.group_size;
    layer.num_groups = (layer.in + run - 1) / run;
    for (int64_t k = 0; k < layer.in; ++k) layer.group_of_column.push_back(k / run);
    if (permuted) std::shuffle(layer.group_of_column.begin(), layer.group_of_column.end(), random_);
    const int64_t top = (int64_t{1} << bits) - 1;
    layer.codes = Ints(layer.out * layer.in, 0, top);
    layer.zeros = Ints(layer.out * layer.num_groups, 1, top);
    for (const float scale : Floats(layer.out * layer.num_groups, 0.05f))
      layer.scales.push_back(kernels::FloatToFloat16(scale));
    FillMatrix(layer);
    return layer;
  }
  static void FillMatrix(Layer& layer) {
    layer.matrix = {layer.out, layer.in, std::vector<double>(static_cast<size_t>(layer.out * layer.in))};
    for (int64_t n = 0; n < layer.out; ++n) {
      for (int64_t k = 0; k < layer.in; ++k) {
        const auto g = static_cast<size_t>(n * layer.num_groups + layer.group_of_column[static_cast<size_t>(k)]);
        layer.matrix.at(n, k) =
            static_cast<double>(layer.codes[static_cast<size_t>(n * layer.in + k)] - layer.zeros[g]) *
            kernels::Float16ToFloat(layer.scales[g]);
      }
    }
  }
  std::vector<uint16_t> TransposedScales(const Layer& layer) {
    std::vector<uint16_t> scales(layer.scales.size());
    for (int64_t n = 0; n < layer.out; ++n) {
      for (int64_t g = 0; g < layer.num_groups; ++g) {
        scales[static_cast<size_t>(g * layer.out + n)] = layer.scales[static_cast<size_t>(n * layer.num_groups + g)];
      }
    }
    return scales;
  }
  static std::vector<int32_t> GroupIndex(const Layer& layer) {
    return {layer.group_of_column.begin(), layer.group_of_column.end()};
  }

  // Checks layer "x" of `weights` whole and split by rows. A row of activations must give the same
  // bits alone and with other rows. With float32, activations are not rounded; with bfloat16, they may be rounded to 8
  // bits.
  void ExpectMatches(const WeightSource& weights, ModelConfig model, Matrix& reference) {
    const int64_t out = reference.rows, in = reference.columns;
    for (const kernels::DType dtype : {kernels::DType::kFloat32, kernels::DType::kBFloat16}) {
      model.dtype = dtype;
      const int64_t row = Int(0, out - 1);
      for (const Shard& rows : {Shard{0, out}, {0, row + 1}, {row, out - row}}) {
        const LinearWeight weight(Load(weights), model, {{"x", out, rows}}, in);
        ASSERT_EQ(weight.num_rows(), rows.count);
        ExpectRows(weight, dtype, rows, reference);
        ExpectProducts(weight, dtype, rows, reference);
      }
    }
  }

  // Returns a bound on the error that rounding scales and minimums to float16 causes in each weight of `row`.
  static double ScaleRounding(kernels::DType dtype, Matrix& reference, int64_t row) {
    if (dtype == kernels::DType::kFloat32) return 0.0;
    double largest = 0.0;
    for (int64_t k = 0; k < reference.columns; ++k) largest = std::max(largest, std::abs(reference.at(row, k)));
    return std::ldexp(largest, -8);
  }

  void ExpectRows(const LinearWeight& weight, kernels::DType dtype, Shard rows, Matrix& reference) {
    std::vector<float> values(static_cast<size_t>(reference.columns));
    weight.Reserve(step_, 1);
    for (int64_t n = 0; n < rows.count; ++n) {
      const uint64_t before = testing_support::NumAllocations();
      weight.UnpackRow(step_, n, 0, values.data());
      EXPECT_EQ(testing_support::NumAllocations() - before, 0u);
      const double rounding = ScaleRounding(dtype, reference, rows.begin + n);
      for (int64_t k = 0; k < reference.columns; ++k) {
        const double expected = reference.at(rows.begin + n, k);
        ASSERT_NEAR(values[static_cast<size_t>(k)], expected, rounding + 1e-6 * std::abs(expected));
      }
    }
  }

  void ExpectProducts(const LinearWeight& weight, kernels::DType dtype, Shard rows, Matrix& reference) {
    const int64_t num_x = Int(2, 9);
    const std::vector<float> x = Floats(num_x * reference.columns), bias = Floats(rows.count);
    std::vector<float> y(static_cast<size_t>(num_x * rows.count)), one(static_cast<size_t>(rows.count));
    weight.Multiply(step_, bias.data(), x.data(), reference.columns, num_x, y.data(), rows.count);
    for (int64_t r = 0; r < num_x; ++r) {
      const float* x_row = x.data() + r * reference.columns;
      weight.Multiply(step_, bias.data(), x_row, reference.columns, 1, one.data(), rows.count);
      double largest_x = 0.0;
      for (int64_t k = 0; k < reference.columns; ++k) largest_x = std::max(largest_x, std::abs(double{x_row[k]}));
      const double rounding_of_x = dtype == kernels::DType::kFloat32 ? 0.0 : largest_x / 254.0;
      for (int64_t n = 0; n < rows.count; ++n) {
        ASSERT_EQ(one[static_cast<size_t>(n)], y[static_cast<size_t>(r * rows.count + n)]);
        const double rounding_of_w = ScaleRounding(dtype, reference, rows.begin + n);
        double sum = bias[static_cast<size_t>(n)], magnitude = 1.0, rounding = 0.0;
        for (int64_t k = 0; k < reference.columns; ++k) {
          const double w = reference.at(rows.begin + n, k);
          sum += x_row[k] * w;
          magnitude += std::abs(x_row[k] * w);
          rounding += std::abs(w) * rounding_of_x + std::abs(x_row[k]) * rounding_of_w;
        }
        ASSERT_NEAR(y[static_cast<size_t>(r * rows.count + n)], sum, 2e-6 * magnitude + rounding);
      }
    }
  }

  static ModelConfig Model(QuantizationMethod method, QuantizationScheme scheme) {
    ModelConfig model;
    model.quantization.method = method;
    model.quantization.groups.push_back({{.all = true, .names = {}}, scheme});
    return model;
  }

  kernels::ThreadPool threads_{2};
  SingleRankCommunicator communicator_;
  LoadContext Load(const WeightSource& weights) { return {config_, weights, memory_, step_}; }

  Workspace workspace_;
  StepContext step_;
  VllmConfig config_;
  NewWeightMemory memory_;
};

TEST_F(QuantLinearTest, GptqMatchesTheDequantizedMatrix) {
  for (int round = 0; round < 60; ++round) {
    const bool v2 = round % 3 == 0, indexed = round % 2 == 0;
    Layer layer = MakeLayer(round % 4 < 2 ? 4 : 8, indexed);
    ModelConfig model =
        Model(QuantizationMethod::kGptq, {.bits = layer.bits, .packed = true, .group_size = layer.group_size});
    model.quantization.gptq_v2 = v2;
    MemoryWeights weights;
    const int64_t per_word = 32 / layer.bits;
    const std::vector<int32_t> words =
        PackWords(layer.codes, layer.out, layer.in, layer.bits);  // [out, in / per_word], to be transposed
    const std::vector<int64_t> transposed = Transposed({words.begin(), words.end()}, layer.out, layer.in / per_word);
    weights.Add("x.qweight", kernels::WeightType::kInt32, {layer.in / per_word, layer.out},
                std::vector<int32_t>(transposed.begin(), transposed.end()));
    std::vector<int64_t> stored = layer.zeros;
    for (int64_t& zero : stored) zero -= v2 ? 0 : 1;
    weights.Add("x.qzeros", kernels::WeightType::kInt32, {layer.num_groups, layer.out / per_word},
                PackWords(Transposed(stored, layer.out, layer.num_groups), layer.num_groups, layer.out, layer.bits));
    weights.Add("x.scales", kernels::WeightType::kFloat16, {layer.num_groups, layer.out}, TransposedScales(layer));
    if (indexed) weights.Add("x.g_idx", kernels::WeightType::kInt32, {layer.in}, GroupIndex(layer));
    ExpectMatches(weights, model, layer.matrix);
  }
}

TEST_F(QuantLinearTest, AwqMatchesTheDequantizedMatrix) {
  const auto shuffled = [](std::vector<int64_t> codes) {
    const std::vector<int64_t> from = codes;
    for (size_t i = 0; i < codes.size(); ++i) {
      codes[i] = from[i / 8 * 8 + std::array<size_t, 8>{0, 2, 4, 6, 1, 3, 5, 7}[i % 8]];
    }
    return codes;
  };
  for (int round = 0; round < 30; ++round) {
    Layer layer = MakeLayer(4, false);
    const ModelConfig model =
        Model(QuantizationMethod::kAwq, {.bits = 4, .packed = true, .group_size = layer.group_size});
    MemoryWeights weights;
    weights.Add("x.qweight", kernels::WeightType::kInt32, {layer.in, layer.out / 8},
                PackWords(shuffled(Transposed(layer.codes, layer.out, layer.in)), layer.in, layer.out, 4));
    weights.Add(
        "x.qzeros", kernels::WeightType::kInt32, {layer.num_groups, layer.out / 8},
        PackWords(shuffled(Transposed(layer.zeros, layer.out, layer.num_groups)), layer.num_groups, layer.out, 4));
    weights.Add("x.scales", kernels::WeightType::kFloat16, {layer.num_groups, layer.out}, TransposedScales(layer));
    ExpectMatches(weights, model, layer.matrix);
  }
}

TEST_F(QuantLinearTest, CompressedTensorsIntegersMatchTheDequantizedMatrix) {
  for (int round = 0; round < 80; ++round) {
    const bool packed = round % 4 != 0, symmetric = round % 3 == 0, indexed = round % 5 == 0;
    Layer layer = MakeLayer(round / 4 % 2 == 0 ? 4 : 8, indexed);
    const int64_t middle = int64_t{1} << (layer.bits - 1);
    if (symmetric) layer.zeros.assign(layer.zeros.size(), middle);
    FillMatrix(layer);
    const ModelConfig model =
        Model(QuantizationMethod::kCompressedTensors,
              {.bits = layer.bits, .packed = packed, .symmetric = symmetric, .group_size = layer.group_size});
    MemoryWeights weights;
    weights.Add("x.weight_scale", kernels::WeightType::kFloat16, {layer.out, layer.num_groups}, layer.scales);
    if (indexed) weights.Add("x.weight_g_idx", kernels::WeightType::kInt32, {layer.in}, GroupIndex(layer));
    const int64_t per_word = 32 / layer.bits;
    if (packed) {
      weights.Add("x.weight_packed", kernels::WeightType::kInt32, {layer.out, (layer.in + per_word - 1) / per_word},
                  PackWords(layer.codes, layer.out, layer.in, layer.bits));
      const std::vector<int32_t> zeros =
          PackWords(Transposed(layer.zeros, layer.out, layer.num_groups), layer.num_groups, layer.out, layer.bits);
      const std::vector<int64_t> transposed =
          Transposed({zeros.begin(), zeros.end()}, layer.num_groups, layer.out / per_word);
      weights.Add("x.weight_zero_point", kernels::WeightType::kInt32, {layer.out / per_word, layer.num_groups},
                  std::vector<int32_t>(transposed.begin(), transposed.end()));
    } else {
      std::vector<int8_t> codes, zeros;
      for (const int64_t code : layer.codes) codes.push_back(static_cast<int8_t>(code - middle));
      for (const int64_t zero : layer.zeros) zeros.push_back(static_cast<int8_t>(zero - middle));
      weights.Add("x.weight", kernels::WeightType::kInt8, {layer.out, layer.in}, codes);
      weights.Add("x.weight_zero_point", kernels::WeightType::kInt8, {layer.out, layer.num_groups}, zeros);
    }
    ExpectMatches(weights, model, layer.matrix);
  }
}

TEST_F(QuantLinearTest, Float8WithBlockScalesMatchesTheDequantizedMatrix) {
  for (int round = 0; round < 40; ++round) {
    const int64_t out = Int(1, 70), in = Int(1, 200), block_rows = Int(1, 40), block_columns = Int(1, 64);
    const ModelConfig model = Model(
        QuantizationMethod::kFp8, {.bits = 8, .is_float = true, .group_size = block_columns, .block_rows = block_rows});
    const int64_t down = (out + block_rows - 1) / block_rows, across = (in + block_columns - 1) / block_columns;
    const std::vector<float> scales = Floats(down * across, 0.1f);
    std::vector<uint8_t> codes;
    Matrix matrix{out, in, std::vector<double>(static_cast<size_t>(out * in))};
    for (int64_t n = 0; n < out; ++n) {
      for (int64_t k = 0; k < in; ++k) {
        const auto code = static_cast<uint8_t>(Int(0, 126) | (Int(0, 1) << 7));
        codes.push_back(code);
        const int exponent = (code >> 3) & 15, mantissa = code & 7;
        const double value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
        matrix.at(n, k) =
            (code >= 128 ? -value : value) * scales[static_cast<size_t>(n / block_rows * across + k / block_columns)];
      }
    }
    MemoryWeights weights;
    weights.Add("x.weight", kernels::WeightType::kFloat8E4M3, {out, in}, codes);
    weights.Add(round % 2 == 0 ? "x.weight_scale_inv" : "x.weight_scale", kernels::WeightType::kFloat32, {down, across},
                scales);
    ExpectMatches(weights, model, matrix);
  }
}

TEST_F(QuantLinearTest, GgmlBlocksSplitAnywhereMatchTheDequantizedMatrix) {
  for (int type = static_cast<int>(kernels::WeightType::kQ8_0); type <= static_cast<int>(kernels::kLastWeightType);
       ++type) {
    const auto weight_type = static_cast<kernels::WeightType>(type);
    const kernels::WeightTypeInfo info = InfoOf(weight_type);
    for (int round = 0; round < 4; ++round) {
      const int64_t out = Int(1, 40), in = info.block_elements * Int(1, 512 / info.block_elements);
      std::vector<uint8_t> bytes(static_cast<size_t>(out * BytesOf(weight_type, in)));
      // Bytes below 48 keep the float16 scales small at any position in a block.
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(Int(0, 47));
      Matrix matrix{out, in, {}};
      kernels::CheckpointQuantMatrix whole(*kernels::BlockFormat(weight_type), out, in);
      std::memcpy(whole.row(0), bytes.data(), bytes.size());
      for (int64_t n = 0; n < out; ++n) {
        std::vector<float> row(static_cast<size_t>(in));
        kernels::KernelsFor(kernels::Isa::kGeneric).quant->dequantize(whole.view(), n, 0, in, row.data());
        matrix.values.insert(matrix.values.end(), row.begin(), row.end());
      }
      MemoryWeights weights;
      weights.Add("x.weight", weight_type, {out, in}, bytes);
      ExpectMatches(weights, ModelConfig(), matrix);
      const VocabParallelEmbedding embedding(Load(weights), ModelConfig(), "x.weight", out, in);
      embedding.Reserve(1);
      std::vector<float> row(static_cast<size_t>(in));
      const auto id = static_cast<int32_t>(Int(0, out - 1));
      embedding.Embed(std::array{id}, row.data());
      for (int64_t k = 0; k < in; ++k) ASSERT_EQ(row[static_cast<size_t>(k)], static_cast<float>(matrix.at(id, k)));
    }
  }
}

TEST_F(QuantLinearTest, SlicesOfDifferentTypesAreStacked) {
  const int64_t in = 256;
  MemoryWeights weights;
  std::vector<std::vector<double>> rows;
  std::vector<OutputSlice> slices;
  for (const auto& [name, type] : {std::pair<std::string, kernels::WeightType>{"q", kernels::WeightType::kQ4_K},
                                   {"k", kernels::WeightType::kFloat32},
                                   {"w", kernels::WeightType::kFloat32},
                                   {"v", kernels::WeightType::kQ6_K}}) {
    const int64_t out = Int(3, 30);
    if (type == kernels::WeightType::kFloat32) {
      const std::vector<float> values = Floats(out * in);
      weights.Add(name + ".weight", type, {out, in}, values);
      for (int64_t n = 1; n < out; ++n) rows.emplace_back(values.begin() + n * in, values.begin() + (n + 1) * in);
    } else {
      std::vector<uint8_t> bytes(static_cast<size_t>(out * BytesOf(type, in)));
      for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(Int(0, 47));
      weights.Add(name + ".weight", type, {out, in}, bytes);
      kernels::CheckpointQuantMatrix whole(*kernels::BlockFormat(type), out, in);
      std::memcpy(whole.row(0), bytes.data(), bytes.size());
      std::vector<float> row(static_cast<size_t>(in));
      for (int64_t n = 1; n < out; ++n) {
        kernels::KernelsFor(kernels::Isa::kGeneric).quant->dequantize(whole.view(), n, 0, in, row.data());
        rows.emplace_back(row.begin(), row.end());
      }
    }
    slices.push_back({name, out, {1, out - 1}});
  }
  const ColumnParallelLinear layer(Load(weights), ModelConfig(), in, slices, false);
  ASSERT_EQ(layer.out_features(), static_cast<int64_t>(rows.size()));
  const std::vector<float> x = Floats(3 * in);
  std::vector<float> y(3 * rows.size());
  layer.Forward(x.data(), in, 3, y.data(), layer.out_features());
  for (size_t r = 0; r < 3; ++r) {
    for (size_t n = 0; n < rows.size(); ++n) {
      double sum = 0.0, magnitude = 1.0;
      for (size_t k = 0; k < static_cast<size_t>(in); ++k) {
        sum += x[r * static_cast<size_t>(in) + k] * rows[n][k];
        magnitude += std::abs(x[r * static_cast<size_t>(in) + k] * rows[n][k]);
      }
      EXPECT_NEAR(y[r * rows.size() + n], sum, 2e-6 * magnitude);
    }
  }
}

// The first column is so large that one scale per token rounds the others far more than one per 128 columns.
TEST_F(QuantLinearTest, InputsAreRoundedWithOneScalePerTokenIfTheCheckpointSaysSo) {
  const int64_t out = 40, in = 400, num_x = 5;
  const std::vector<int64_t> codes = Ints(out * in, -127, 127);
  MemoryWeights weights;
  weights.Add("x.weight", kernels::WeightType::kInt8, {out, in}, std::vector<int8_t>(codes.begin(), codes.end()));
  weights.Add("x.weight_scale", kernels::WeightType::kFloat32, {out, 1},
              std::vector<float>(static_cast<size_t>(out), 1.0f));
  std::vector<float> x = Floats(num_x * in), y(static_cast<size_t>(num_x * out));
  for (int64_t r = 0; r < num_x; ++r) {
    x[static_cast<size_t>(r * in)] = 127.0f;  // so the scale is 1
    for (int64_t k = 1; k < in; ++k) {
      float& value = x[static_cast<size_t>(r * in + k)];
      // Not halfway between two codes.
      if (std::abs(std::abs(value - std::nearbyint(value)) - 0.5f) < 0.01f) value += 0.05f;
    }
  }
  for (const bool per_token : {false, true}) {
    ModelConfig model = Model(QuantizationMethod::kCompressedTensors,
                              {.bits = 8, .symmetric = true, .group_size = -1, .has_scale_per_token = per_token});
    model.dtype = kernels::DType::kBFloat16;
    const LinearWeight weight(Load(weights), model, {{"x", out, {0, out}}}, in);
    weight.Multiply(step_, nullptr, x.data(), in, num_x, y.data(), out);
    int64_t num_equal = 0;
    for (int64_t r = 0; r < num_x; ++r) {
      for (int64_t n = 0; n < out; ++n) {
        int64_t sum = 0;
        for (int64_t k = 0; k < in; ++k) {
          sum += codes[static_cast<size_t>(n * in + k)] * std::lround(x[static_cast<size_t>(r * in + k)]);
        }
        num_equal += y[static_cast<size_t>(r * out + n)] == static_cast<float>(sum) ? 1 : 0;
      }
    }
    EXPECT_EQ(num_equal, per_token ? num_x * out : 0);
  }
}

// float16 must be precise enough for the scales of the whole matrix, so that ranks agree with each other and with a
// single rank. Here the rows of the second rank alone would not fit.
TEST_F(QuantLinearTest, RanksDecideTogetherWhetherTheScalesFitFloat16) {
  const int64_t out = 64, in = 128;
  for (const float small : {1e-7f, 1e-3f}) {
    for (const float large : {0.0123f, 1e6f}) {
      std::vector<int8_t> codes;
      for (const int64_t code : Ints(out * in, -127, 127)) codes.push_back(static_cast<int8_t>(code));
      std::vector<float> scales(static_cast<size_t>(out), large);
      std::fill(scales.begin() + out / 2, scales.end(), small);
      MemoryWeights weights;
      weights.Add("x.weight", kernels::WeightType::kInt8, {out, in}, codes);
      weights.Add("x.weight_scale", kernels::WeightType::kFloat32, {out, 1}, scales);
      ModelConfig model =
          Model(QuantizationMethod::kCompressedTensors, {.bits = 8, .symmetric = true, .group_size = -1});
      model.dtype = kernels::DType::kBFloat16;
      const std::vector<float> x = Floats(in);
      std::vector<float> expected(static_cast<size_t>(out)), y(expected.size());
      const LinearWeight whole(Load(weights), model, SplitMatrix(step_, "x", out), in);
      whole.Multiply(step_, nullptr, x.data(), in, 1, expected.data(), out);
      RankGroup ranks(2);
      ranks.Run([&](int rank) {
        kernels::ThreadPool threads(1);
        Workspace workspace;
        NewWeightMemory memory;
        const StepContext step{step_.kernels, &threads, &ranks.communicator(rank), &workspace};
        const LinearWeight own({config_, weights, memory, step}, model, SplitMatrix(step, "x", out), in);
        own.Multiply(step, nullptr, x.data(), in, 1, y.data() + rank * out / 2, out);
      });
      EXPECT_EQ(y, expected) << small << " " << large;
    }
  }
}

TEST_F(QuantLinearTest, OneOfTheRanksMayBuildALayerThatIsNotSplit) {
  const int64_t out = 32, in = 128;
  MemoryWeights weights;
  weights.Add("x.weight", kernels::WeightType::kQ8_0, {out, in}, std::vector<uint8_t>(static_cast<size_t>(out * 136)));
  ModelConfig model;
  model.dtype = kernels::DType::kBFloat16;
  RankGroup ranks(2);
  ranks.Run([&](int rank) {
    if (rank != 0) return;
    kernels::ThreadPool threads(1);
    Workspace workspace;
    const StepContext step{step_.kernels, &threads, &ranks.communicator(rank), &workspace};
    const LinearWeight weight({config_, weights, memory_, step}, model, {{"x", out, {0, out}}}, in);
    EXPECT_EQ(weight.num_rows(), out);
  });
}

TEST_F(QuantLinearTest, QuantizingQuantizedWeightsIsRejected) {
  MemoryWeights weights;
  weights.Add("x.weight", kernels::WeightType::kQ8_0, {2, 32}, std::vector<uint8_t>(68));
  ModelConfig model;
  model.quantization.method = QuantizationMethod::kInt4;
  EXPECT_THROW(LinearWeight(Load(weights), model, {{"x", 2, {0, 2}}}, 32), ConfigError);
}

TEST_F(QuantLinearTest, ExpertGatesAreNotQuantizedAtLoad) {
  MemoryWeights weights;
  const std::vector<float> values = Floats(8 * 64);
  ModelConfig model;
  model.quantization.method = QuantizationMethod::kInt4;
  for (const auto& [name, is_float] :
       {std::pair<std::string, bool>{"mlp.gate", true}, {"mlp.shared_expert_gate", true}, {"mlp.gate_proj", false}}) {
    weights.Add(name + ".weight", kernels::WeightType::kFloat32, {8, 64}, values);
    const LinearWeight weight(Load(weights), model, {{name, 8, {0, 8}}}, 64);
    std::vector<float> row(64);
    weight.UnpackRow(step_, 5, 0, row.data());
    EXPECT_EQ(std::equal(row.begin(), row.end(), values.begin() + 5 * 64), is_float) << name;
  }
}

TEST_F(QuantLinearTest, GroupIndexOutOfRangeIsRejected) {
  MemoryWeights weights;
  weights.Add("x.qweight", kernels::WeightType::kInt32, {4, 8}, std::vector<int32_t>(32));
  weights.Add("x.qzeros", kernels::WeightType::kInt32, {2, 1}, std::vector<int32_t>(2));
  weights.Add("x.scales", kernels::WeightType::kFloat16, {2, 8}, std::vector<uint16_t>(16));
  const ModelConfig model = Model(QuantizationMethod::kGptq, {.bits = 4, .packed = true, .group_size = 16});
  for (const int32_t bad : {2, -1}) {
    std::vector<int32_t> index(32, 1);
    index[31] = bad;
    weights.Add("x.g_idx", kernels::WeightType::kInt32, {32}, index);
    EXPECT_THROW(LinearWeight(Load(weights), model, {{"x", 8, {0, 8}}}, 32), ModelError);
  }
}

}  // namespace
}  // namespace vllm
