// Compares layers of quantized checkpoints with the weights to which the libraries that define the formats dequantize
// them (tests/golden/quant_layers_golden.py), and tests the errors for tensors that are missing or wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/model_loader/config_fields.h"
#include "engine/model_loader/hf/safetensors.h"
#include "engine/model_loader/quantization/config_parser.h"
#include "engine/model_loader/quantization/loader.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/kernels.h"
#include "tests/support/temp_directory.h"

namespace vllm {
namespace {

using nlohmann::json;

constexpr int64_t kRows = 24;
constexpr int64_t kColumns = 96;

std::string DataFile(const std::string& name) { return std::string(VLLMCLI_TEST_DATA) + "/quant/layers/" + name; }

json Cases() {
  std::ifstream file(DataFile("cases.json"));
  return json::parse(file);
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  const json cases = Cases();
  for (const auto& [name, config] : cases.items()) names.push_back(name);
  return names;
}

// The tensors of a file, which tests may change.
class ChangedTensors : public WeightSource {
 public:
  explicit ChangedTensors(const SafetensorsFile& file) {
    for (const std::string& name : file.Names()) tensors[name] = file.Get(name, *file.ShapeOf(name));
  }
  bool Contains(std::string_view name) const override { return tensors.contains(std::string(name)); }
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override {
    const auto it = tensors.find(std::string(name));
    if (it == tensors.end()) throw ModelError("tensor " + std::string(name) + ": missing");
    if (!std::ranges::equal(it->second.shape, shape)) throw ModelError("tensor " + std::string(name) + ": shape");
    return it->second;
  }
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override {
    const auto it = tensors.find(std::string(name));
    if (it == tensors.end()) return std::nullopt;
    return it->second.shape;
  }
  std::vector<std::string> Names() const override { return {}; }
  int64_t TotalBytes() const override { return 0; }

  std::map<std::string, TensorView> tensors;
};

class QuantLayersTest : public testing::TestWithParam<std::string> {
 protected:
  QuantLayersTest() : file_(DataFile(GetParam() + ".safetensors")) {
    const json config = {{"quantization_config", Cases()[GetParam()]}};
    model_.quantization = ReadQuantization(ConfigFields(config, "config.json"));
  }
  std::optional<CheckpointMatrix> Load(const WeightSource& weights, const MatrixRows& rows = kWhole) const {
    const ForEach for_each = [](int64_t count, const std::function<void(int64_t)>& f) {
      for (int64_t i = 0; i < count; ++i) f(i);
    };
    return LoadQuantized(weights, model_, "layer", rows, kernels::NewBuffers, for_each);
  }
  // Checks that all values of the rows are those of the library.
  void ExpectLibraryValues(const MatrixRows& rows) const {
    const TensorView expected = file_.Get("expected", std::vector<int64_t>{kRows, kColumns});
    const std::optional<CheckpointMatrix> stored = Load(file_, rows);
    ASSERT_TRUE(stored);
    const kernels::CheckpointQuantMatrixView& w = stored->matrix.view();
    std::vector<float> got(static_cast<size_t>(w.num_columns)), want(kColumns);
    for (int64_t n = 0; n < rows.num_rows; ++n) {
      std::memcpy(want.data(), expected.Row(rows.row_begin + n), kColumns * sizeof(float));
      kernels::KernelsFor(kernels::Isa::kGeneric).quant->dequantize(w, n, 0, w.num_columns, got.data());
      int64_t num_values = 0;
      for (size_t k = 0; k < got.size(); ++k) {
        const int64_t column = stored->column_order.empty() ? static_cast<int64_t>(k) : stored->column_order[k];
        if (column < 0) continue;
        ++num_values;
        const float value = want[static_cast<size_t>(column)];
        // bitsandbytes multiplies the three factors of LLM.int8 in another order.
        const float tolerance = GetParam() == "int8" ? std::abs(value) * 0x1p-22f : 0.0f;
        ASSERT_NEAR(got[k], value, tolerance) << n << " " << column;
      }
      ASSERT_EQ(num_values, kColumns);
    }
  }

  static constexpr MatrixRows kWhole = {kRows, kColumns, 0, kRows};
  SafetensorsFile file_;
  ModelConfig model_;
};

INSTANTIATE_TEST_SUITE_P(Cases, QuantLayersTest, testing::ValuesIn(CaseNames()),
                         [](const auto& name) { return name.param; });

TEST_P(QuantLayersTest, ValuesEqualThoseOfTheLibrary) { ExpectLibraryValues(kWhole); }

TEST_P(QuantLayersTest, RowsHaveTheValuesOfTheWholeMatrix) {
  ExpectLibraryValues({kRows, kColumns, 0, 7});
  ExpectLibraryValues({kRows, kColumns, 7, 11});
  ExpectLibraryValues({kRows, kColumns, 23, 1});
}

TEST_P(QuantLayersTest, MissingAndWrongTensorsAreRejectedByName) {
  const std::vector<std::string> unread = {"expected", "layer.weight_shape", "layer.weight_format",
                                           "layer.input_scale"};
  for (const std::string& name : file_.Names()) {
    if (std::find(unread.begin(), unread.end(), name) != unread.end()) continue;
    const auto error = [&](auto&& change) {
      ChangedTensors tensors(file_);
      change(tensors);
      return MessageOf<ModelError>([&] { Load(tensors); });
    };
    const auto type = error([&](ChangedTensors& t) { t.tensors[name].type = kernels::WeightType::kInt64; });
    EXPECT_NE(type.find(name), std::string::npos) << type;
    const auto shape = error([&](ChangedTensors& t) { t.tensors[name].shape = {7, 5}; });
    EXPECT_NE(shape.find(name), std::string::npos) << shape;
    ChangedTensors missing(file_);
    missing.tensors.erase(name);
    std::string message;
    try {
      // A layer without codes is not quantized.
      EXPECT_FALSE(Load(missing)) << name;
    } catch (const ModelError& e) {
      message = e.what();
      EXPECT_NE(message.find(name), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace vllm
