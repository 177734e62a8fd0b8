// Compares the MLP of many rows, whose activations are computed in runs of columns, with the MLP of a few rows at a
// time, whose activations are computed at once. Each row must have the same bits.
#include "engine/layers/mlp/mlp.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/executor/rank_group.h"
#include "engine/lora/lora_adapter.h"
#include "engine/lora/lora_layers.h"
#include "kernels/isa/kernels_for.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/memory_weights.h"
#include "tests/support/random_values.h"
#include "tests/support/test_isa.h"

namespace vllm {
namespace {

using kernels::WeightType;
using testing_support::MemoryWeights;

constexpr int64_t kHidden = 256;
constexpr int64_t kRows = 150;
constexpr int64_t kFewRows = 6;
constexpr int64_t kIntermediate = 2016;  // 15 runs of 128 columns and one of 96

class MlpTest : public testing::Test, protected testing_support::RandomValues {
 protected:
  MlpTest() : RandomValues(5) {
    const kernels::Isa isa = testing_support::IsaFromEnvironment().value_or(kernels::BestIsa());
    step_ = {&kernels::KernelsFor(isa), &threads_, &communicator_, &workspace_};
    config_.model.hidden_size = kHidden;
    config_.model.dtype = kernels::DType::kBFloat16;
    spec_.intermediate_size = kIntermediate;
  }

  void AddFloats(const std::string& name, int64_t rows, int64_t columns) {
    weights_.Add(name + ".weight", WeightType::kFloat32, {rows, columns}, Floats(rows * columns, 0.05f));
  }
  void AddBias(const std::string& name, int64_t rows) {
    weights_.Add(name + ".bias", WeightType::kFloat32, {rows}, Floats(rows));
  }
  void AddBlocks(const std::string& name, WeightType type, int64_t rows, int64_t columns) {
    std::vector<uint8_t> bytes(static_cast<size_t>(rows * BytesOf(type, columns)));
    // Bytes below 32 keep the float16 scales small at any position in a block.
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(Int(0, 31));
    weights_.Add(name + ".weight", type, {rows, columns}, bytes);
  }
  // One scale per row of the weight and one per row of x.
  void AddRowScaledCodes(const std::string& name, int64_t rows, int64_t columns) {
    std::vector<int8_t> codes(static_cast<size_t>(rows * columns));
    for (int8_t& code : codes) code = static_cast<int8_t>(Int(-127, 127));
    weights_.Add(name + ".weight", WeightType::kInt8, {rows, columns}, codes);
    weights_.Add(name + ".weight_scale", WeightType::kFloat32, {rows, 1}, Floats(rows, 0.001f));
  }
  void AddGatedFloats() {
    AddFloats("gate_proj", spec_.intermediate_size, kHidden);
    AddFloats("up_proj", spec_.intermediate_size, kHidden);
    AddFloats("down_proj", kHidden, spec_.intermediate_size);
  }

  Mlp Load() { return Mlp({config_, weights_, memory_, step_, &lora_}, config_.model, "", spec_); }
  // slots: see Mlp::Forward.
  static std::vector<float> Forward(const Mlp& mlp, const float* x, int64_t num_rows, const int32_t* slots) {
    std::vector<float> scratch(static_cast<size_t>(mlp.scratch_floats(num_rows)));
    std::vector<float> y(static_cast<size_t>(num_rows * kHidden));
    mlp.Forward(x, num_rows, scratch.data(), y.data(), slots);
    return y;
  }
  static std::vector<float> ForwardFewAtATime(const Mlp& mlp, const std::vector<float>& x, const int32_t* slots) {
    std::vector<float> all;
    for (int64_t row = 0; row < kRows; row += kFewRows) {
      const std::vector<float> y =
          Forward(mlp, x.data() + row * kHidden, kFewRows, slots == nullptr ? nullptr : slots + row);
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  }

  enum Way { kInRuns, kAtOnce };

  // Checks the bits, and that the activations of many rows are computed in `way`.
  void ExpectSameBits(Way way) {
    const Mlp mlp = Load();
    const std::vector<float> x = Floats(kRows * kHidden);
    const std::vector<float> expected = ForwardFewAtATime(mlp, x, nullptr);
    EXPECT_EQ(workspace_.output_runs.size_bytes(), 0u) << "few rows are not computed in runs";
    EXPECT_EQ(Forward(mlp, x.data(), kRows, nullptr), expected);
    EXPECT_EQ(workspace_.output_runs.size_bytes() > 0, way == kInRuns);
  }
  // Checks the bits of rows of which every third has an adapter that changes `module` [rows, columns].
  void ExpectSameBitsWithAdapter(const std::string& module, int64_t rows, int64_t columns) {
    constexpr int64_t kRank = 4;
    AddGatedFloats();
    MemoryWeights tensors;
    tensors.Add("a", WeightType::kFloat32, {kRank, columns}, Floats(kRank * columns));
    tensors.Add("b", WeightType::kFloat32, {rows, kRank}, Floats(rows * kRank));
    const auto adapter = std::make_shared<LoRAAdapter>();
    LoRAModule& changed = adapter->modules.emplace_back();
    changed.name = module;
    changed.tensor_name = "a";
    changed.rank = kRank;
    changed.a = tensors.Get("a", std::array{kRank, columns});
    changed.b = tensors.Get("b", std::array{rows, kRank});
    const Mlp mlp = Load();
    mlp.Reserve(kRows);
    lora_.Add(adapter, weights_);
    lora_.Load(0);
    std::vector<int32_t> slots(kRows, -1);
    for (size_t row = 0; row < slots.size(); row += 3) slots[row] = 0;
    const std::vector<float> x = Floats(kRows * kHidden);
    const std::vector<float> y = Forward(mlp, x.data(), kRows, slots.data());
    EXPECT_EQ(y, ForwardFewAtATime(mlp, x, slots.data()));
    EXPECT_NE(y, Forward(mlp, x.data(), kRows, nullptr));
  }
  // The way of bfloat16 weights: some instruction sets multiply them by float32 inputs.
  Way WayOfBFloat16() const { return step_.kernels->tiles->linear_bfloat16 == nullptr ? kAtOnce : kInRuns; }

  kernels::ThreadPool threads_{2};
  SingleRankCommunicator communicator_;
  Workspace workspace_;
  StepContext step_;
  VllmConfig config_;
  MemoryWeights weights_;
  NewWeightMemory memory_;
  LoRALayers lora_;
  MlpSpec spec_;
};

TEST_F(MlpTest, BFloat16) {
  AddGatedFloats();
  ExpectSameBits(WayOfBFloat16());
}

TEST_F(MlpTest, BFloat16WithBiases) {
  AddGatedFloats();
  AddBias("gate_proj", kIntermediate);
  AddBias("up_proj", kIntermediate);
  AddBias("down_proj", kHidden);
  spec_.has_bias = true;
  ExpectSameBits(WayOfBFloat16());
}

TEST_F(MlpTest, OneMatrixOfUpAndGate) {
  spec_.gate_proj = spec_.up_proj = "";
  spec_.gate_up_proj = "gate_up_proj";
  spec_.up_comes_first = true;
  AddFloats("gate_up_proj", 2 * kIntermediate, kHidden);
  AddFloats("down_proj", kHidden, kIntermediate);
  ExpectSameBits(WayOfBFloat16());
}

TEST_F(MlpTest, NotGated) {
  spec_.gate_proj = "";
  spec_.activation = kernels::Activation::kGeluTanh;
  spec_.intermediate_size = 2 * kIntermediate;
  AddFloats("up_proj", 2 * kIntermediate, kHidden);
  AddFloats("down_proj", kHidden, 2 * kIntermediate);
  ExpectSameBits(WayOfBFloat16());
}

TEST_F(MlpTest, ClampedAndScaled) {
  AddGatedFloats();
  spec_.clamped_swiglu = ClampedSwiglu{.limit = 0.5};
  spec_.gate_scale = 0.75;
  spec_.down_scale = 1.5;
  ExpectSameBits(WayOfBFloat16());
}

TEST_F(MlpTest, QuantizedAtLoad) {
  AddGatedFloats();
  config_.model.quantization.method = QuantizationMethod::kInt8;
  ExpectSameBits(kInRuns);
}

TEST_F(MlpTest, QuantizedAtLoadTo4Bits) {
  AddGatedFloats();
  config_.model.quantization.method = QuantizationMethod::kInt4;
  ExpectSameBits(kInRuns);
}

// The number of columns of down_proj is a multiple of its block size, 256.
class MlpOfBlocksTest : public MlpTest, public testing::WithParamInterface<WeightType> {};

TEST_P(MlpOfBlocksTest, AreMultiplied) {
  spec_.intermediate_size = 2048;
  AddBlocks("gate_proj", GetParam(), 2048, kHidden);
  AddBlocks("up_proj", GetParam(), 2048, kHidden);
  AddBlocks("down_proj", GetParam(), kHidden, 2048);
  ExpectSameBits(kInRuns);
}

INSTANTIATE_TEST_SUITE_P(Types, MlpOfBlocksTest,
                         testing::Values(WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_K, WeightType::kQ6_K),
                         [](const auto& test) { return std::string(InfoOf(test.param).name); });

// down_proj's inputs have other scales than those of gate_proj and up_proj.
TEST_F(MlpTest, MatricesOfDifferentTypes) {
  spec_.intermediate_size = 2048;
  AddBlocks("gate_proj", WeightType::kQ4_K, 2048, kHidden);
  AddBlocks("up_proj", WeightType::kQ4_K, 2048, kHidden);
  AddBlocks("down_proj", WeightType::kQ6_K, kHidden, 2048);
  ExpectSameBits(kInRuns);
}

TEST_F(MlpTest, GateAndUpWhoseInputsArePackedDifferently) {
  spec_.intermediate_size = 2048;
  AddBlocks("gate_proj", WeightType::kQ4_K, 2048, kHidden);
  AddBlocks("up_proj", WeightType::kQ6_K, 2048, kHidden);
  AddBlocks("down_proj", WeightType::kQ6_K, kHidden, 2048);
  ExpectSameBits(kAtOnce);
}

// The scale of a row of activations is known only when all of the row is.
TEST_F(MlpTest, OneScalePerRowOfActivations) {
  config_.model.quantization.method = QuantizationMethod::kCompressedTensors;
  config_.model.quantization.groups.push_back(
      {{.all = true, .names = {}}, {.bits = 8, .symmetric = true, .group_size = -1, .has_scale_per_token = true}});
  AddRowScaledCodes("gate_proj", kIntermediate, kHidden);
  AddRowScaledCodes("up_proj", kIntermediate, kHidden);
  AddRowScaledCodes("down_proj", kHidden, kIntermediate);
  ExpectSameBits(kInRuns);
}

TEST_F(MlpTest, DoesNotAllocateMemoryInRuns) {
  AddGatedFloats();
  config_.model.quantization.method = QuantizationMethod::kInt8;
  const Mlp mlp = Load();
  mlp.Reserve(kRows);
  const std::vector<float> x = Floats(kRows * kHidden);
  std::vector<float> scratch(static_cast<size_t>(mlp.scratch_floats(kRows))), y(x.size());
  mlp.Forward(x.data(), kRows, scratch.data(), y.data(), nullptr);  // kernels allocate in their first call
  const uint64_t before = testing_support::NumAllocations();
  mlp.Forward(x.data(), kRows, scratch.data(), y.data(), nullptr);
  EXPECT_EQ(testing_support::NumAllocations() - before, 0u);
}

TEST_F(MlpTest, AdapterOfUp) { ExpectSameBitsWithAdapter("up_proj", kIntermediate, kHidden); }

TEST_F(MlpTest, AdapterOfDown) { ExpectSameBitsWithAdapter("down_proj", kHidden, kIntermediate); }

TEST_F(MlpTest, GateWithACutoff) {
  AddGatedFloats();
  spec_.gate_cutoff = 0.5;
  ExpectSameBits(kAtOnce);
}

// Up does not begin at a panel of the matrix that gate and up share.
TEST_F(MlpTest, SizeThatIsNoMultipleOfAPanel) {
  spec_.intermediate_size = 2001;
  AddGatedFloats();
  ExpectSameBits(kAtOnce);
}

}  // namespace
}  // namespace vllm
