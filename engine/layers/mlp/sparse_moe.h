// SparseMoe: a mixture of experts (arXiv 1701.06538). The router chooses a few experts for each row and weights their
// outputs, which are added. Some families have an additional expert that all rows share. Every expert is an Mlp, split
// over the ranks. The outputs of a row's experts are added in ascending order of expert index, so the result does not
// depend on the other rows. Several experts run at once, so that the ranks exchange their activations together. Owned
// by a DecoderLayer. Built at load, then used by the rank's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/layers/linear/linear.h"
#include "engine/layers/load_context.h"
#include "engine/layers/mlp/expert_router.h"
#include "engine/layers/mlp/mlp.h"

namespace vllm {

// How the checkpoint stores the experts. kSeparate: one tensor per matrix and expert. The others: see
// expert_weights.h. A source that has the tensors of kSeparate, such as a GGUF file, is read as kSeparate.
enum class ExpertLayout : uint8_t { kSeparate, kStacked, kTransposed, kGptOss, kMegaBlocks };

// Tensor names are relative to the block's prefix. The names of expert i's tensors start with `experts`, then "<i>.".
struct MoeSpec {
  std::string router = "gate";
  std::string correction_bias;  // [num_experts], see ChooseExperts; empty: none
  ExpertRouterSpec routing;
  bool router_bias = false;
  std::string experts = "experts.";
  ExpertLayout layout = ExpertLayout::kSeparate;
  std::string stacked_gate_up;  // kStacked
  std::string stacked_down;
  MlpSpec expert;
  std::optional<MlpSpec> shared_expert;
  std::string shared_expert_prefix = "shared_expert.";
  // The output of the shared expert is multiplied by sigmoid(shared_expert_gate x). Empty: it is not.
  std::string shared_expert_gate = "shared_expert_gate";
  // If set, the router reads rms_norm(x) * router_scale / sqrt(hidden_size) instead of x.
  std::string router_scale;
  double router_norm_eps = 1e-6;
  std::string expert_scale;  // if set, the weight of expert i is multiplied by element i of this tensor
  std::string output_bias;   // if set, it is added to the sum of the experts, [hidden_size]. GGUF files may lack it
  // Nemotron 3: if set, the routed experts read latent_in x, of this width, and latent_out maps the sum of their
  // outputs to hidden_size.
  int64_t latent_size = 0;
  std::string latent_in = "fc1_latent_proj";
  std::string latent_out = "fc2_latent_proj";
  bool latent_bias = false;
};

class SparseMoe {
 public:
  SparseMoe(const LoadContext& load, const ModelConfig& model, const std::string& prefix, const MoeSpec& spec);

  // Number of floats in the scratch of Forward.
  int64_t scratch_floats(int64_t num_rows) const;
  // Reserves the rank's scratch for Forward with up to `max_rows` rows.
  void Reserve(int64_t max_rows) const;
  // x, out: [num_rows, hidden_size]; scratch: [scratch_floats(num_rows)]; lora_slots: [num_rows] or null.
  void Forward(const float* x, int64_t num_rows, float* scratch, float* out, const int32_t* lora_slots) {
    Forward(x, x, num_rows, scratch, out, lora_slots);
  }
  // The router reads router_x, [num_rows, hidden_size], and the experts read x.
  void Forward(const float* x, const float* router_x, int64_t num_rows, float* scratch, float* out,
               const int32_t* lora_slots);

 private:
  // What RunExperts reads and writes. x, out: [num_rows, width].
  struct Run {
    int64_t num_rows = 0;
    int64_t width = 0;
    const float* x = nullptr;
    float* out = nullptr;
    const int32_t* lora_slots = nullptr;
    float* scratch = nullptr;
  };

  // Returns expert `index`, or the shared expert, whose index is the number of experts.
  const Mlp& Expert(size_t index) const { return index < experts_.size() ? *experts_[index] : *shared_expert_; }
  int64_t rows_at_once() const { return experts_[0]->rows_at_once(); }
  // Rows whose activations the ranks exchange together.
  int64_t activation_rows(int64_t num_rows) const;
  int64_t activation_stride() const;
  void Route(const float* router_logits, int64_t num_rows);
  // Appends all rows to `routed`, weighted by the gate of the shared expert. scratch: [num_rows]
  void RouteToShared(const float* x, int64_t num_rows, float* scratch, const int32_t* lora_slots);
  // Fills expert_rows with the rows in `routed`: those of the experts or those of the shared expert, or both.
  void ListExpertRows(bool routed, bool shared);
  // Sets `out` to the weighted sums of the outputs of the experts in expert_rows.
  void RunExperts(const Run& run);
  // Computes the activations of elements [begin, end) of expert_rows.
  void RunUp(const Run& run, size_t begin, size_t end, float* activations);
  // Adds the outputs of these elements to this rank's columns of `out`.
  void RunDown(const Run& run, size_t begin, size_t end, std::span<const PeerBuffers> peers);
  void AddOutputBias(int64_t num_rows, float* out) const;

  const StepContext& step_;
  CalibrationRun* calibration_run_;  // null: not of a model that reads a calibration text
  MoeSpec spec_;
  int64_t hidden_size_;
  int64_t expert_width_;         // of the inputs and outputs of the routed experts
  ColumnParallelLinear router_;  // replicated on every rank
  // [hidden_size] the weights of the router's norm, and [num_experts]; empty if there are none
  std::vector<float> router_norm_, expert_scale_;
  std::vector<float> correction_bias_, output_bias_;
  std::vector<std::unique_ptr<Mlp>> experts_;
  std::unique_ptr<Mlp> shared_expert_;
  std::unique_ptr<ColumnParallelLinear> shared_expert_gate_;
  std::unique_ptr<ColumnParallelLinear> latent_in_, latent_out_;  // replicated; null without latent_size
};

}  // namespace vllm
