// Quantizes linear layers with a calibration, whole and in shards.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "engine/layers/linear/calibration_run.h"
#include "engine/layers/linear/linear_weight.h"
#include "kernels/isa/kernels_for.h"
#include "tests/support/random_values.h"

namespace vllm {
namespace {

constexpr int64_t kOut = 40, kIn = 192;

// Has one tensor, "a.weight", [kOut, kIn].
class OneTensor : public WeightSource {
 public:
  explicit OneTensor(const std::vector<float>& values) : bytes_(values.size() * sizeof(float)) {
    std::memcpy(bytes_.data(), values.data(), bytes_.size());
  }
  bool Contains(std::string_view name) const override { return name == "a.weight"; }
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override {
    if (!Contains(name)) return std::nullopt;
    return std::vector<int64_t>{kOut, kIn};
  }
  TensorView Get(std::string_view name, std::span<const int64_t> /*shape*/) const override {
    return {.name = std::string(name), .type = kernels::WeightType::kFloat32, .shape = {kOut, kIn}, .data = bytes_};
  }
  std::vector<std::string> Names() const override { return {"a.weight"}; }
  int64_t TotalBytes() const override { return static_cast<int64_t>(bytes_.size()); }

 private:
  std::vector<std::byte> bytes_;
};

class FakeCalibration : public Calibration {
 public:
  explicit FakeCalibration(CalibratedWeights weights) : weights_(std::move(weights)) {}
  const std::string& description() const override { return description_; }
  const CalibratedWeights& Weights() override { return weights_; }

 private:
  std::string description_ = "fake";
  CalibratedWeights weights_;
};

class CalibratedLinearTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  static constexpr int64_t kTokens = 150;

  CalibratedLinearTest() : RandomValues(5), weights_(Floats(kOut * kIn, 1.0f)), x_(Floats(2 * kTokens * kIn, 1.0f)) {
    step_ = {&kernels::KernelsFor(kernels::BestIsa()), &threads_, &communicator_, &workspace_};
    for (size_t i = 1; i < x_.size(); ++i) x_[i] += 0.8f * x_[i - 1];
    // The second half of the rows is the first one with an error.
    for (size_t i = 0; i < x_.size() / 2; ++i) x_[x_.size() / 2 + i] = 0.9f * x_[i] + 0.1f * x_[x_.size() / 2 + i];
  }
  LoadContext Load(WeightMemory& memory, Calibration* calibration, CalibrationRun* run) const {
    return {config_, weights_, memory, step_, nullptr, calibration, run};
  }
  static VllmConfig Quantized(VllmConfig config) {
    config.model.quantization.method = QuantizationMethod::kInt4;
    return config;
  }
  // Returns the outputs of the unquantized layer for some rows of inputs while it is calibrated.
  std::vector<float> Calibrate(CalibrationRun& run, const std::vector<float>& x) {
    NewWeightMemory memory;
    const LinearWeight weight(Load(memory, nullptr, &run), config_.model, {{"a", kOut, {0, kOut}}}, kIn);
    return Multiply(weight, x);
  }
  std::vector<float> Multiply(const LinearWeight& weight, const std::vector<float>& x) {
    const int64_t num_rows = std::ssize(x) / kIn;
    weight.Reserve(step_, num_rows);
    std::vector<float> y(static_cast<size_t>(num_rows * weight.num_rows()));
    weight.Multiply(step_, nullptr, x.data(), kIn, num_rows, y.data(), weight.num_rows());
    return y;
  }
  // Returns the weights of a layer that was calibrated with x_.
  CalibratedWeights Calibrated() {
    CalibrationRun run;
    run.SetTokens(kTokens);
    Calibrate(run, x_);
    return run.TakeWeights();
  }
  // Returns the stored values of the shard's rows.
  std::vector<float> Quantize(Shard rows, Calibration* calibration) {
    const VllmConfig quantized = Quantized(config_);
    NewWeightMemory memory;
    const LinearWeight weight({quantized, weights_, memory, step_, nullptr, calibration}, quantized.model,
                              {{"a", kOut, rows}}, kIn);
    weight.Reserve(step_, 1);
    std::vector<float> values(static_cast<size_t>(rows.count * kIn));
    for (int64_t row = 0; row < rows.count; ++row) {
      weight.UnpackRow(step_, row, 0, values.data() + row * kIn);
    }
    return values;
  }
  std::vector<float> QuantizeAll(CalibratedWeights weights) {
    FakeCalibration calibration(std::move(weights));
    return Quantize({0, kOut}, &calibration);
  }
  static std::vector<float> Rows(const std::vector<float>& x, int64_t width, int64_t begin, int64_t end) {
    return {x.begin() + begin * width, x.begin() + end * width};
  }

  VllmConfig config_;
  OneTensor weights_;
  std::vector<float> x_;  // [2 * kTokens, kIn]
  kernels::ThreadPool threads_{1};
  SingleRankCommunicator communicator_;
  Workspace workspace_;
  StepContext step_;
};

TEST_F(CalibratedLinearTest, TheFirstHalfUsesTheOriginalWeightsAndTheSecondTheQuantizedOnes) {
  CalibrationRun run;
  run.SetTokens(kTokens);
  const std::vector<float> y = Calibrate(run, x_);
  FakeCalibration calibration(run.TakeWeights());
  NewWeightMemory memory;
  const LinearWeight original(Load(memory, nullptr, nullptr), config_.model, {{"a", kOut, {0, kOut}}}, kIn);
  const VllmConfig config = Quantized(config_);
  const LinearWeight quantized({config, weights_, memory, step_, nullptr, &calibration}, config.model,
                               {{"a", kOut, {0, kOut}}}, kIn);
  EXPECT_EQ(Rows(y, kOut, 0, kTokens), Multiply(original, Rows(x_, kIn, 0, kTokens)));
  EXPECT_EQ(Rows(y, kOut, kTokens, 2 * kTokens), Multiply(quantized, Rows(x_, kIn, kTokens, 2 * kTokens)));
}

TEST_F(CalibratedLinearTest, BothHalvesChangeTheCodes) {
  const std::vector<float> both = QuantizeAll(Calibrated());
  const std::vector<float> before = x_;
  std::copy_n(before.begin(), kTokens * kIn, x_.begin() + kTokens * kIn);
  const std::vector<float> first = QuantizeAll(Calibrated());
  std::copy_n(before.begin() + kTokens * kIn, kTokens * kIn, x_.begin());
  std::copy_n(before.begin() + kTokens * kIn, kTokens * kIn, x_.begin() + kTokens * kIn);
  const std::vector<float> second = QuantizeAll(Calibrated());
  EXPECT_NE(both, first);
  EXPECT_NE(both, second);
}

// An expert gets the rows of some tokens, and not of the same ones in both halves.
TEST_F(CalibratedLinearTest, AnExpertIsCalibratedWithTheTokensThatItHasInBothHalves) {
  std::vector<RoutedRow> routed;
  std::vector<float> x, first, second;
  for (int64_t row = 0; row < 2 * kTokens; ++row) {
    const int64_t token = row % kTokens;
    const bool in_first = token % 3 != 0, in_second = token % 5 != 0;
    if (!(row < kTokens ? in_first : in_second)) continue;
    routed.push_back({row, 1.0f});
    const std::vector<float> values = Rows(x_, kIn, row, row + 1);
    x.insert(x.end(), values.begin(), values.end());
    if (!in_first || !in_second) continue;
    std::vector<float>& half = row < kTokens ? first : second;
    half.insert(half.end(), values.begin(), values.end());
  }
  CalibrationRun some, common;
  some.SetTokens(kTokens);
  some.SetRows(routed);
  const std::vector<float> y = Calibrate(some, x);
  common.SetTokens(std::ssize(first) / kIn);
  first.insert(first.end(), second.begin(), second.end());
  Calibrate(common, first);
  FakeCalibration calibration(some.TakeWeights());
  EXPECT_EQ(Quantize({0, kOut}, &calibration), QuantizeAll(common.TakeWeights()));
  const int64_t num_original = std::ranges::count_if(routed, [](const RoutedRow& row) { return row.row < kTokens; });
  const VllmConfig config = Quantized(config_);
  NewWeightMemory memory;
  const LinearWeight quantized({config, weights_, memory, step_, nullptr, &calibration}, config.model,
                               {{"a", kOut, {0, kOut}}}, kIn);
  EXPECT_EQ(Rows(y, kOut, num_original, std::ssize(routed)),
            Multiply(quantized, Rows(x, kIn, num_original, std::ssize(routed))));
}

TEST_F(CalibratedLinearTest, ALayerWithOtherInputsIsNotCalibrated) {
  CalibrationRun run;
  run.SetTokens(kTokens);
  NewWeightMemory memory;
  const LinearWeight original(Load(memory, nullptr, nullptr), config_.model, {{"a", kOut, {0, kOut}}}, kIn);
  const std::vector<float> row = Rows(x_, kIn, 0, 1);
  EXPECT_EQ(Calibrate(run, row), Multiply(original, row)) << "one row per text, such as that of a pooler";
  const std::vector<RoutedRow> routed = {{1, 1.0f}, {kTokens, 1.0f}};
  run.SetRows(routed);
  const std::vector<float> two = Rows(x_, kIn, 0, 2);
  EXPECT_EQ(Calibrate(run, two), Multiply(original, two)) << "no token in both halves";
  EXPECT_EQ(QuantizeAll(run.TakeWeights()), Quantize({0, kOut}, nullptr));
}

TEST_F(CalibratedLinearTest, ShardsHaveTheCodesOfTheWholeMatrix) {
  FakeCalibration calibration(Calibrated());
  const std::vector<float> whole = Quantize({0, kOut}, &calibration);
  EXPECT_NE(whole, Quantize({0, kOut}, nullptr));
  const Shard rows{7, 21};
  const std::vector<float> shard = Quantize(rows, &calibration);
  EXPECT_EQ(shard, Rows(whole, kIn, rows.begin, rows.begin + rows.count));
}

}  // namespace
}  // namespace vllm
