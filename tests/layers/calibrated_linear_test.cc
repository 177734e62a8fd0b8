// Quantizes linear layers with a calibration, whole and in shards.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

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
  ActivationMoments moments;
  const std::string& description() const override { return description_; }
  const ActivationMoments& Moments() override { return moments; }

 private:
  std::string description_ = "fake";
};

class CalibratedLinearTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  CalibratedLinearTest() : RandomValues(5), weights_(Floats(kOut * kIn, 1.0f)) {
    step_ = {&kernels::KernelsFor(kernels::BestIsa()), &threads_, &communicator_, &workspace_};
    config_.model.quantization.method = QuantizationMethod::kInt4;
    std::vector<float> x = Floats(300 * kIn, 1.0f);
    for (size_t i = 1; i < x.size(); ++i) x[i] += 0.8f * x[i - 1];
    const ForEach for_each = [](int64_t count, const std::function<void(int64_t i)>& f) {
      for (int64_t i = 0; i < count; ++i) f(i);
    };
    calibration_.moments.Add(*step_.kernels, "a", x.data(), kIn, 300, kIn, for_each);
  }
  // Returns the stored values of the shard's rows and columns.
  std::vector<float> Quantize(Shard rows, Shard columns, Calibration* calibration) {
    NewWeightMemory memory;
    const LoadContext load{config_, weights_, memory, step_, nullptr, calibration};
    const LinearWeight weight(load, config_.model, {{"a", kOut, rows}}, kIn, columns);
    weight.Reserve(step_, 1);
    std::vector<float> values(static_cast<size_t>(rows.count * columns.count));
    for (int64_t row = 0; row < rows.count; ++row) {
      weight.UnpackRow(step_, row, 0, values.data() + row * columns.count);
    }
    return values;
  }

  VllmConfig config_;
  OneTensor weights_;
  FakeCalibration calibration_;
  kernels::ThreadPool threads_{1};
  SingleRankCommunicator communicator_;
  Workspace workspace_;
  StepContext step_;
};

TEST_F(CalibratedLinearTest, ShardsHaveTheCodesOfTheWholeMatrix) {
  const std::vector<float> whole = Quantize({0, kOut}, {0, kIn}, &calibration_);
  const Shard rows{7, 21}, columns{96, 64};
  const std::vector<float> shard = Quantize(rows, columns, &calibration_);
  for (int64_t n = 0; n < rows.count; ++n) {
    for (int64_t k = 0; k < columns.count; ++k) {
      ASSERT_EQ(shard[static_cast<size_t>(n * columns.count + k)],
                whole[static_cast<size_t>((rows.begin + n) * kIn + columns.begin + k)]);
    }
  }
}

TEST_F(CalibratedLinearTest, AShardThatBeginsWithinAGroupIsQuantizedAlone) {
  const std::vector<float> shard = Quantize({0, kOut}, {40, 100}, &calibration_);
  EXPECT_NE(shard, Quantize({0, kOut}, {40, 100}, nullptr));
}

TEST_F(CalibratedLinearTest, ALayerWithoutInputsIsQuantizedWithoutCalibration) {
  FakeCalibration empty;
  EXPECT_EQ(Quantize({0, kOut}, {0, kIn}, &empty), Quantize({0, kOut}, {0, kIn}, nullptr));
}

}  // namespace
}  // namespace vllm
