#include "engine/model_loader/gguf/hybrid.h"

#include <string>
#include <vector>

namespace vllm {
namespace {

constexpr int64_t kMaxTaps = 64;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxStateSize = 4096;
constexpr int64_t kMaxSize = int64_t{1} << 24;

class HybridReader {
 public:
  HybridReader(const GgufFile& file, ModelConfig& config) : file_(file), keys_(file.metadata()), config_(config) {}

  void Read(GgufHybrid hybrid) {
    ReadMixers(hybrid);
    if (hybrid == GgufHybrid::kShortConv) {
      config_.conv_l_cache = keys_.RequiredInt(Key("shortconv.l_cache"), 1, kMaxTaps);
      ReadLfm2Experts();
    } else {
      ReadMamba2();
    }
  }

 private:
  std::string Key(std::string_view name) const {
    return std::string(*keys_.String("general.architecture")) + "." + std::string(name);
  }

  // Reads an array with one number per layer.
  std::vector<int32_t> PerLayer(std::string_view name) const {
    const std::string key = Key(name);
    if (!keys_.IsArray(key)) keys_.Fail(key, "must be an array with one number per layer");
    std::vector<int32_t> values = keys_.Ints(key);
    if (values.size() < config_.layers.size()) keys_.Fail(key, "fewer entries than block_count");
    return values;
  }

  void ReadMixers(GgufHybrid hybrid) {
    if (hybrid == GgufHybrid::kOnlyMamba2 || hybrid == GgufHybrid::kParallel) {
      for (LayerConfig& layer : config_.layers) {
        layer.has_mlp = hybrid == GgufHybrid::kParallel;
        layer.use_rope = hybrid == GgufHybrid::kParallel;
        layer.mixer = hybrid == GgufHybrid::kParallel ? LayerMixer::kAttentionAndMamba2 : LayerMixer::kMamba2;
      }
      return;
    }
    const std::vector<int32_t> kv_heads = PerLayer("attention.head_count_kv");
    std::vector<int32_t> widths;
    if (hybrid == GgufHybrid::kOneBlock) widths = PerLayer("feed_forward_length");
    // Granite 4 leaves positions to the causal mask and to Mamba-2, unless this key says otherwise.
    const bool use_rope = hybrid == GgufHybrid::kShortConv ||
                          (hybrid == GgufHybrid::kMamba2 && keys_.Bool(Key("rope.scaling.finetuned")).value_or(false));
    for (size_t i = 0; i < config_.layers.size(); ++i) {
      LayerConfig& layer = config_.layers[i];
      layer.use_rope = use_rope;
      if (hybrid == GgufHybrid::kOneBlock) {
        if (kv_heads[i] > 0 && widths[i] > 0) {
          keys_.Fail(Key("feed_forward_length"), "layer " + std::to_string(i) + " has both attention and an MLP");
        }
        layer.has_mlp = kv_heads[i] == 0 && widths[i] > 0;
        layer.is_moe = layer.has_mlp && config_.num_experts > 0;
        if (layer.has_mlp) layer.mixer = LayerMixer::kNone;
      }
      if (kv_heads[i] == 0 && layer.mixer != LayerMixer::kNone) {
        layer.mixer = hybrid == GgufHybrid::kShortConv ? LayerMixer::kShortConv : LayerMixer::kMamba2;
      }
    }
  }

  void ReadLfm2Experts() {
    if (config_.num_experts == 0) return;
    const int64_t num_dense =
        keys_.Int(Key("leading_dense_block_count"), 0, static_cast<int64_t>(config_.layers.size())).value_or(0);
    for (int64_t i = 0; i < num_dense; ++i) config_.layers[static_cast<size_t>(i)].is_moe = false;
    config_.use_expert_bias = FindInLayers("exp_probs_b.bias");
  }

  // Returns true if a layer has this tensor.
  bool FindInLayers(const std::string& name) const {
    for (size_t i = 0; i < config_.layers.size(); ++i) {
      if (file_.Find("blk." + std::to_string(i) + "." + name) != nullptr) return true;
    }
    return false;
  }

  void ReadMamba2() {
    config_.mamba_d_conv = keys_.RequiredInt(Key("ssm.conv_kernel"), 1, kMaxTaps);
    config_.mamba_d_state = keys_.RequiredInt(Key("ssm.state_size"), 1, kMaxStateSize);
    config_.mamba_n_heads = keys_.RequiredInt(Key("ssm.time_step_rank"), 1, kMaxHeads);
    config_.mamba_n_groups = keys_.Int(Key("ssm.group_count"), 1, config_.mamba_n_heads).value_or(1);
    const int64_t inner = keys_.RequiredInt(Key("ssm.inner_size"), 1, kMaxSize);
    if (inner % config_.mamba_n_heads != 0) {
      keys_.Fail(Key("ssm.inner_size"), "not a multiple of ssm.time_step_rank " +
                                            std::to_string(config_.mamba_n_heads) + " (" + std::to_string(inner) + ")");
    }
    if (config_.mamba_n_heads % config_.mamba_n_groups != 0) {
      keys_.Fail(Key("ssm.group_count"), "does not divide ssm.time_step_rank " + std::to_string(config_.mamba_n_heads) +
                                             " (" + std::to_string(config_.mamba_n_groups) + ")");
    }
    config_.mamba_d_head = inner / config_.mamba_n_heads;
    // Linear layers have a bias exactly if the file has one. Here, the same is true of the convolution and the norm.
    config_.mamba_conv_bias = FindInLayers("ssm_conv1d.bias");
    config_.mamba_rms_norm = FindInLayers("ssm_norm.weight");
  }

  const GgufFile& file_;
  const GgufMetadata& keys_;
  ModelConfig& config_;
};

}  // namespace

void ReadGgufHybrid(const GgufFile& file, GgufHybrid hybrid, ModelConfig& config) {
  HybridReader(file, config).Read(hybrid);
}

}  // namespace vllm
