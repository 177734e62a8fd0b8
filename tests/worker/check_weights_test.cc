// Tests that CheckWeights rejects exactly the checkpoints that loading rejects, with the same message. For every family
// and every weight format, each tensor in turn is missing or has the wrong shape. Also tests checkpoint files that
// change while they are loaded.
#include "engine/worker/check_weights.h"
#include "engine/model_loader/checkpoint/open_weights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/config/errors.h"
#include "engine/layers/communicator.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/hf/hf_config.h"
#include "engine/models/registry.h"
#include "engine/worker/worker.h"
#include "kernels/isa/kernels_for.h"
#include "tests/support/temp_directory.h"
#include "tests/support/test_models.h"

namespace vllm {
namespace {

namespace fs = std::filesystem;
using testing_support::TestModels;

// Wraps another source, but reports that one tensor is missing or has a larger first dimension (a scalar has two
// elements).
class DamagedWeights : public WeightSource {
 public:
  enum class Damage { kNone, kMissing, kLarger };

  DamagedWeights(const WeightSource& inner, std::string name, Damage damage)
      : inner_(inner), name_(std::move(name)), damage_(damage) {}
  bool Contains(std::string_view name) const override { return !IsMissing(name) && inner_.Contains(name); }
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override {
    if (IsMissing(name)) throw ModelError("tensor " + name_ + ": missing");
    if (damage_ == Damage::kLarger && name == name_) throw ModelError("tensor " + name_ + ": another shape");
    return inner_.Get(name, shape);
  }
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override {
    if (IsMissing(name)) return std::nullopt;
    std::optional<std::vector<int64_t>> shape = inner_.ShapeOf(name);
    if (!shape || damage_ != Damage::kLarger || name != name_) return shape;
    if (shape->empty()) return std::vector<int64_t>{2};
    ++shape->front();
    return shape;
  }
  bool DecidesBiases() const override { return inner_.DecidesBiases(); }
  std::vector<std::string> Names() const override { return inner_.Names(); }
  int64_t TotalBytes() const override { return inner_.TotalBytes(); }

 private:
  bool IsMissing(std::string_view name) const { return damage_ == Damage::kMissing && name == name_; }

  const WeightSource& inner_;
  const std::string name_;
  const Damage damage_;
};

void Load(const VllmConfig& config, const WeightSource& weights) {
  kernels::ThreadPool threads(1);
  SingleRankCommunicator communicator;
  Workspace workspace;
  const StepContext step{&kernels::KernelsFor(kernels::BestIsa()), &threads, &communicator, &workspace};
  NewWeightMemory memory;
  BuildModel({config, weights, memory, step});
}

TEST(CheckWeightsTest, RejectsExactlyWhatLoadingRejects) {
  using Damage = DamagedWeights::Damage;
#if defined(__SANITIZE_THREAD__)
  constexpr size_t kStep = 8;  // all would take longer than a test may
#else
  constexpr size_t kStep = 1;
#endif
  size_t num_rejected = 0;
  const std::vector<std::string> paths = TestModels();
  for (size_t i = 0; i < paths.size(); i += kStep) {
    const std::string& path = paths[i];
    VllmConfig config;
    config.model = path.ends_with(".gguf") ? LoadGgufConfig(path) : LoadModelConfig(path);
    config.scheduler.max_num_batched_tokens = 16;
    const std::unique_ptr<WeightSource> weights = OpenWeights(config);
    for (const kernels::DType dtype : {config.model.checkpoint_dtype, kernels::DType::kFloat32}) {
      config.model.dtype = dtype;
      std::vector<std::string> names = weights->Names();
      names.emplace_back("");  // stands for an undamaged checkpoint
      for (const std::string& name : names) {
        for (const Damage damage : {Damage::kMissing, Damage::kLarger}) {
          const DamagedWeights damaged(*weights, name, name.empty() ? Damage::kNone : damage);
          const std::string expected = MessageOf<ModelError>([&] { Load(config, damaged); });
          const std::string message = MessageOf<ModelError>([&] { CheckWeights(config, damaged); });
          ASSERT_EQ(message, expected) << path << " " << name;
          ASSERT_TRUE(!name.empty() || expected.empty()) << path << " " << expected;
          num_rejected += !message.empty();
        }
      }
    }
  }
  EXPECT_GT(num_rejected, 1000 / kStep);
}

// Calls `rewrite` before each tensor is read, so that the model's file changes while it is being loaded.
class RewritingWeights : public WeightSource {
 public:
  RewritingWeights(const WeightSource& inner, std::function<void()> rewrite)
      : inner_(inner), rewrite_(std::move(rewrite)) {}
  bool Contains(std::string_view name) const override { return inner_.Contains(name); }
  TensorView Get(std::string_view name, std::span<const int64_t> shape) const override {
    rewrite_();
    return inner_.Get(name, shape);
  }
  std::optional<std::vector<int64_t>> ShapeOf(std::string_view name) const override { return inner_.ShapeOf(name); }
  std::vector<std::string> Names() const override { return inner_.Names(); }
  std::vector<const MappedFile*> Files() const override { return inner_.Files(); }
  int64_t TotalBytes() const override { return inner_.TotalBytes(); }

 private:
  const WeightSource& inner_;
  const std::function<void()> rewrite_;
};

class ChangingFileTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::copy(std::string(VLLMCLI_TEST_DATA) + "/models/llama", directory_, fs::copy_options::recursive);
    config_.model = LoadModelConfig(directory_);
    config_.parallel.threads_per_rank = 1;
  }
  // Loads the model and calls `change` before each tensor is read. Returns the error message, or an empty string.
  std::string LoadDuring(const std::function<void()>& change) {
    const std::unique_ptr<WeightSource> weights = OpenWeights(config_);
    const RewritingWeights changing(*weights, change);
    SingleRankCommunicator communicator;
    NewWeightMemory memory;
    LogitsBuffer logits_buffer(config_);
    return MessageOf<ModelError>(
        [&] { Worker worker(config_, changing, memory, communicator, {}, logits_buffer, nullptr); });
  }
  std::string File() const { return directory_ + "/model.safetensors"; }

  TempDirectory temp_;
  std::string directory_ = temp_.path() + "/model";
  VllmConfig config_;
};

TEST_F(ChangingFileTest, FileModifiedWhileItIsReadIsRejected) {
  EXPECT_EQ(LoadDuring([] {}), "");
  const auto touch = [this] { fs::last_write_time(File(), fs::last_write_time(File()) + std::chrono::seconds(1)); };
  EXPECT_EQ(LoadDuring(touch), "tensor file " + File() + ": was changed while it was being read");
  EXPECT_EQ(LoadDuring([this] { std::ofstream(File(), std::ios::app) << "more"; }),
            "tensor file " + File() + ": was changed while it was being read");
}

TEST_F(ChangingFileTest, FileReplacedOrRemovedWhileItIsReadIsNotAnError) {
  fs::copy_file(File(), directory_ + "/other");
  EXPECT_EQ(LoadDuring([this] {
              if (fs::exists(directory_ + "/other")) fs::rename(directory_ + "/other", File());
            }),
            "");
  EXPECT_EQ(LoadDuring([this] { fs::remove(File()); }), "");
}

}  // namespace
}  // namespace vllm
