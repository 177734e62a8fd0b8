// Multiplies by all matrices of a model in the shape of Qwen2.5-0.5B, as a step does, and compares the time with the
// machine's limits. $VLLMCLI_BENCH_VARIANTS chooses the kernels, see machine_limits.h.
//   model_pass_bench [THREADS [PASSES [ROWS...]]]
// After each pass, the same threads only read the same bytes, so that on a shared machine both are timed under the same
// load. For each weight format and number of rows, prints medians: the milliseconds of a pass and of a read, the read
// and the roofline as shares of the pass, operations per byte of weights, and 10^9 operations per second. If the read's
// share is 100 %, the pass is bound by memory bandwidth. The roofline is the longer of the read and the arithmetic at
// the instruction's peak rate. Formats whose instruction PeakRate cannot measure are omitted. bench/roofline.py draws
// the result.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/machine_limits.h"
#include "bench/median.h"
#include "engine/layers/linear/linear_matrix.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/matrix/aligned_buffer.h"
#include "kernels/matrix/checkpoint_quant_matrix.h"

namespace vllm {
namespace {

struct Shape {
  int64_t out, in;
};

constexpr int kNumLayers = 24;
constexpr Shape kLayer[] = {{1152, 896}, {896, 896}, {9728, 896}, {896, 4864}};
constexpr Shape kHead = {151936, 896};
// Of a long prompt, the head multiplies only the last token.
constexpr int64_t kMaxHeadRows = 64;

struct Form {
  const char* name;
  const kernels::PackedQuantForm* quant;  // null: bfloat16
};

constexpr kernels::PackedQuantForm kWideInt4 = {4, kernels::kScaleColumns, false, 8};
constexpr kernels::PackedQuantForm kQ8_0 = {8, 32}, kQ4_0 = {4, 32, false, 8}, kQ4_K = {4, 32, true, 0, nullptr, true};
constexpr kernels::PackedQuantForm kQ5_0 = {5, 32, false, 16}, kQ5_K = {5, 32, true, 0, nullptr, true};
constexpr kernels::PackedQuantForm kQ6_K = {6, 16, false, 32, nullptr, true};
constexpr Form kForms[] = {{"bfloat16", nullptr},
                           {"int8", &kernels::kInt8Form},
                           {"Q8_0", &kQ8_0},
                           {"int4/128", &kWideInt4},
                           {"int4", &kernels::kInt4Form},
                           {"Q4_0", &kQ4_0},
                           {"Q4_K", &kQ4_K},
                           {"Q5_0", &kQ5_0},
                           {"Q5_K", &kQ5_K},
                           {"Q6_K", &kQ6_K}};

class Model {
 public:
  explicit Model(const Form& form) {
    for (int layer = 0; layer < kNumLayers; ++layer) {
      for (const Shape& shape : kLayer) Add(form, shape);
    }
    Add(form, kHead);
  }

  double bytes() const {
    double sum = 0.0;
    for (const auto& [words, count] : weights_) sum += static_cast<double>(count) * sizeof(uint64_t);
    return sum;
  }
  double operations(int64_t rows) const {
    const auto head = static_cast<double>(kHead.out * kHead.in), all = static_cast<double>(num_weights_);
    return 2.0 * (static_cast<double>(rows) * (all - head) + static_cast<double>(HeadRows(rows)) * head);
  }

  void Multiply(const StepContext& step, int64_t rows, const float* x, float* y) const {
    for (size_t i = 0; i < matrices_.size(); ++i) {
      const int64_t count = shapes_[i].out == kHead.out ? HeadRows(rows) : rows;
      matrices_[i].Multiply(step, {nullptr, x, shapes_[i].in, count, y, shapes_[i].out});
    }
  }

  // Reads the weights in the order of Multiply: matrix by matrix, one part per thread.
  void Read(kernels::ThreadPool& threads) const {
    const int64_t parts = threads.num_threads();
    for (const auto& [words, count] : weights_) {
      threads.ParallelFor(parts, [&, from = words, all = count](int64_t part, int /*thread*/) {
        ReadWords(from + all * part / parts, all * (part + 1) / parts - all * part / parts);
      });
    }
  }

 private:
  static int64_t HeadRows(int64_t rows) { return std::min(rows, kMaxHeadRows); }

  void Add(const Form& form, const Shape& shape) {
    shapes_.push_back(shape);
    num_weights_ += shape.out * shape.in;
    if (form.quant == nullptr) {
      const std::vector<float> source(static_cast<size_t>(shape.out * shape.in), 0.01f);
      kernels::PackedMatrix matrix(shape.out, shape.in, kernels::DType::kBFloat16);
      matrix.PackRows(reinterpret_cast<const std::byte*>(source.data()), kernels::DType::kFloat32, shape.in * 4);
      AddBytes(matrix.view().data, static_cast<int64_t>(matrix.size_bytes()));
      matrices_.emplace_back(std::move(matrix), std::vector<Shard>{{0, shape.out}});
    } else {
      const std::vector<uint8_t> codes(static_cast<size_t>(shape.in), 7);
      const std::vector<float> scales(static_cast<size_t>(shape.in), 0.01f);
      kernels::PackedQuantMatrix matrix(*form.quant, shape.out, shape.in);
      for (int64_t n = 0; n < shape.out; ++n)
        matrix.SetRow(n, {codes.data(), scales.data(), scales.data(), scales.data(), scales.data()});
      const kernels::PackedQuantView& w = matrix.view();
      AddBytes(w.codes, w.num_panels() * w.num_blocks() * w.block_bytes());
      if (w.supers != nullptr) AddBytes(w.supers, w.num_panels() * w.num_supers() * w.super_bytes());
      if (w.scales != nullptr) AddBytes(w.scales, w.num_panels() * w.num_scales() * kernels::kPanelRows * 2);
      if (w.minimums != nullptr) AddBytes(w.minimums, w.num_panels() * w.num_scales() * kernels::kPanelRows * 2);
      matrices_.emplace_back(std::move(matrix));
    }
  }
  void AddBytes(const void* data, int64_t count) {
    weights_.emplace_back(static_cast<const uint64_t*>(data), count / static_cast<int64_t>(sizeof(uint64_t)));
  }

  std::vector<LinearMatrix> matrices_;
  std::vector<Shape> shapes_;
  std::vector<std::pair<const uint64_t*, int64_t>> weights_;
  int64_t num_weights_ = 0;
};

template <typename F>
double Seconds(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void Run(int num_threads, int num_passes, const std::vector<int64_t>& all_rows) {
  kernels::ThreadPool threads(num_threads);
  Workspace workspace;
  const StepContext step{&BenchKernels(), &threads, nullptr, &workspace};
  std::printf("| weights | rows | ms | read ms | %% of read speed | %% of roofline | ops/byte | Gop/s |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const Form& form : kForms) {
    const kernels::Isa isa = BenchIsa();
    const double peak =
        num_threads * PeakRate(isa, form.quant == nullptr ? BFloat16Instruction(isa) : Int8Instruction(isa));
    if (peak == 0.0) continue;
    const Model model(form);
    for (const int64_t rows : all_rows) {
      const std::vector<float> x(static_cast<size_t>(rows * 4864), 0.25f);
      const int64_t num_results = std::max(std::min(rows, kMaxHeadRows) * kHead.out, rows * 9728);
      const kernels::AlignedBuffer y(static_cast<size_t>(num_results) *
                                     sizeof(float));  // with huge pages, as the engine's
      const double arithmetic = model.operations(rows) / peak;
      std::vector<double> passes, reads, read_share, roofline_share;
      for (int i = -1; i < num_passes; ++i) {
        const double pass = Seconds([&] { model.Multiply(step, rows, x.data(), y.as<float>()); });
        const double read = Seconds([&] { model.Read(threads); });
        if (i < 0) continue;  // warm-up: touches y and wakes the threads
        passes.push_back(pass);
        reads.push_back(read);
        read_share.push_back(read / pass);
        roofline_share.push_back(std::max(read, arithmetic) / pass);
      }
      const double seconds = Median(passes);
      std::printf("| %s | %d | %.1f | %.1f | %.0f %% | %.0f %% | %.1f | %.1f |\n", form.name, static_cast<int>(rows),
                  seconds * 1e3, Median(reads) * 1e3, Median(read_share) * 100, Median(roofline_share) * 100,
                  model.operations(rows) / model.bytes(), 1e-9 * model.operations(rows) / seconds);
      std::fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  const int num_threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int num_passes = argc > 2 ? std::atoi(argv[2]) : 21;
  std::vector<int64_t> rows;
  for (int i = 3; i < argc; ++i) rows.push_back(std::atoi(argv[i]));
  if (rows.empty()) rows = {1, 2, 4, 8, 16, 32, 64};
  const bool valid_rows = std::all_of(rows.begin(), rows.end(), [](int64_t n) { return n >= 1 && n <= 4096; });
  if (num_threads < 1 || num_threads > 1024 || num_passes < 1 || !valid_rows) {
    std::fprintf(stderr, "usage: model_pass_bench [THREADS [PASSES [ROWS...]]]\n");
    return 2;
  }
  vllm::Run(num_threads, num_passes, rows);
}
