#include "engine/executor/tensor_parallel_executor.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <new>
#include <numeric>
#include <string>
#include <system_error>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/layers/head_shards.h"
#include "engine/lora/lora_adapter.h"
#include "engine/model_loader/checkpoint/open_weights.h"
#include "engine/models/registry.h"
#include "kernels/isa/kernels_for.h"
#include "kernels/threading/available_memory.h"
#include "kernels/threading/cpu_topology.h"
#include "kernels/threading/thread_pool.h"

namespace vllm {

namespace {

// The KV cache's share of the remaining memory. The rest is for the page cache, other programs and requests' outputs.
constexpr double kKVMemoryFraction = 0.5;

// Returns the bytes that an adapter takes on all ranks, or a little more: some of its matrices are split.
int64_t LoadedBytes(const LoRAAdapter& adapter, const VllmConfig& config) {
  int64_t num_elements = 0;
  for (const LoRAModule& module : adapter.modules) {
    for (const TensorView* matrix : {&module.a, &module.b}) {
      if (!matrix->shape.empty()) num_elements += matrix->shape[0] * matrix->shape[1];
    }
  }
  return num_elements * static_cast<int64_t>(SizeOf(config.model.dtype)) * config.parallel.tensor_parallel_size;
}

// Returns the bytes that adapters can take in addition to those that are loaded with the model.
int64_t MoreLoRABytes(const VllmConfig& config) {
  std::vector<int64_t> sizes;
  for (const auto& adapter : config.lora.adapters) sizes.push_back(LoadedBytes(*adapter, config));
  const auto num_loaded = static_cast<std::ptrdiff_t>(config.NumLoRAsLoadedAtStart());
  const int64_t loaded = std::accumulate(sizes.begin(), sizes.begin() + num_loaded, int64_t{0});
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  return std::accumulate(sizes.begin(), sizes.begin() + num_loaded, int64_t{0}) - loaded;
}

}  // namespace

TensorParallelExecutor::TensorParallelExecutor(const VllmConfig& config, Calibration* calibration)
    : config_(config),
      matrices_(config.load.matrices != nullptr ? config.load.matrices
                                                : std::make_shared<MatrixStore>(config.parallel.tensor_parallel_size)),
      adapters_(config.lora.adapters),
      loaded_loras_(config.MaxCpuLoRAs()) {
  CheckArchitecture(config_.model);
  const auto size = static_cast<int>(config_.parallel.tensor_parallel_size);
  for (const LayerConfig& layer : config_.model.layers) {
    if (!layer.HasAttention()) continue;
    ShardHeads(config_.model.num_attention_heads, config_.model.NumKVHeads(layer), 0, size);
  }
  const std::unique_ptr<WeightSource> weights = OpenWeights(config_);
  const kernels::AvailableMemory available = kernels::ReadAvailableMemory();
  const std::string num_threads = std::to_string(config_.parallel.num_threads());
  try {
    logits_ = std::make_unique<LogitsBuffer>(config_);
    // Before this thread is pinned, because a new thread may run on the same CPUs as the one that creates it.
    mask_thread_ = std::make_unique<MaskThread>();
    ranks_ = std::make_unique<RankGroup>(size, config_.parallel.Wait());
    PlaceRanks();
    workers_.resize(static_cast<size_t>(size));
    rank_times_.resize(static_cast<size_t>(size));
    const auto for_each = [this](int64_t count, const std::function<void(int64_t i)>& f) {
      std::vector<int> cores;
      for (const std::vector<int>& own : cores_) cores.insert(cores.end(), own.begin(), own.end());
      const ParallelConfig& parallel = config_.parallel;
      kernels::ThreadPool threads(static_cast<int>(parallel.tensor_parallel_size * parallel.threads_per_rank), cores);
      threads.ParallelFor(count, [&f](int64_t i, int /*thread*/) { f(i); });
    };
    if (!matrices_->is_complete()) {
      const kernels::Isa isa = config_.isa.value_or(kernels::BestIsa());
      matrices_->OpenCache(config_, *weights, ToString(isa),
                           calibration == nullptr ? std::string_view() : calibration->description(), for_each);
    }
    ranks_->Run([&](int rank) {
      const auto index = static_cast<size_t>(rank);
      if (!cores_.empty()) kernels::PinThisThread(cores_[index][0]);
      const std::unique_ptr<WeightMemory> memory = matrices_->MemoryOf(rank);
      workers_[index] = std::make_unique<Worker>(config_, *weights, *memory, ranks_->communicator(rank),
                                                 cores_.empty() ? std::vector<int>() : cores_[index], *logits_,
                                                 rank == 0 ? mask_thread_.get() : nullptr, calibration);
    });
    matrices_->Complete(for_each);
    std::vector<int32_t> loaded(static_cast<size_t>(config_.NumLoRAsLoadedAtStart()));
    std::iota(loaded.begin(), loaded.end(), 0);
    loaded_loras_.Use(loaded);
  } catch (const std::bad_alloc&) {
    throw ResourceError("cannot load model " + config_.model.model + ": out of memory (" +
                        std::to_string(weights->TotalBytes()) +
                        " bytes of weights, their packed form and the buffers of a step do not fit into the " +
                        std::to_string(available.bytes) + " bytes left by " + available.bound + ")");
  } catch (const std::system_error& e) {
    throw ResourceError("cannot start the engine's threads: " + std::string(e.what()) + " (" + num_threads +
                        " requested; tightest memory limit: " + available.bound + ")");
  }
}

TensorParallelExecutor::~TensorParallelExecutor() {
  // Any thread may free a worker's memory, because the rank's thread is idle now.
  workers_.clear();
  ranks_.reset();
  if (caller_cores_.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : caller_cores_) CPU_SET(static_cast<size_t>(core), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

void TensorParallelExecutor::PlaceRanks() {
  const ParallelConfig& parallel = config_.parallel;
  if (parallel.world_size() == 1 || !parallel.pin_cores) return;
  const std::vector<int> cpus = kernels::UsableCpus();
  // The ranks of all engines are placed together, and each engine takes its own.
  std::vector<std::vector<int>> cores =
      kernels::CpuTopology(cpus).Place(parallel.world_size(), parallel.threads_per_rank);
  if (cores.empty()) return;
  const int64_t first = parallel.data_parallel_rank * parallel.tensor_parallel_size;
  cores_.assign(cores.begin() + first, cores.begin() + first + parallel.tensor_parallel_size);
  caller_cores_ = cpus;
}

int64_t TensorParallelExecutor::PageSizeBytes() const {
  int64_t bytes = 0;
  for (const std::unique_ptr<Worker>& worker : workers_) bytes += worker->PageSizeBytes();
  return bytes;
}

const LoadReport& TensorParallelExecutor::load_report() const { return matrices_->load_report(); }

int64_t TensorParallelExecutor::UntouchedBytes() const {
  // Pages of a mapped file count as available memory, but decoding needs them. Step buffers are allocated at load but
  // first written by a step, because writing them at load would make loading slower. Data-parallel engines share the
  // weights. Each has its own buffers, those of the engines that load later included.
  int64_t buffer_bytes = LogitsBuffer::Bytes(config_);
  for (const std::unique_ptr<Worker>& worker : workers_) buffer_bytes += worker->ScratchBytes();
  return load_report().mapped_bytes + config_.parallel.num_local_engines() * (buffer_bytes + MoreLoRABytes(config_));
}

int64_t TensorParallelExecutor::SpareMemory(int64_t num_blocks) const {
  const int64_t kv_bytes = config_.parallel.num_local_engines() * (num_blocks + 1) * PageSizeBytes();
  return std::max<int64_t>(0, kernels::ReadAvailableMemory(UntouchedBytes()).bytes - kv_bytes);
}

int64_t TensorParallelExecutor::DetermineAvailableMemory() {
  ranks_->Run([&](int rank) { workers_[static_cast<size_t>(rank)]->ProfileRun(); });
  const kernels::AvailableMemory available = kernels::ReadAvailableMemory(UntouchedBytes());
  memory_bound_ = available.bound;
  return static_cast<int64_t>(static_cast<double>(available.bytes) * kKVMemoryFraction) /
         config_.parallel.num_local_engines();
}

void TensorParallelExecutor::InitializeKVCache(int64_t num_blocks) {
  try {
    ranks_->Run([&](int rank) { workers_[static_cast<size_t>(rank)]->InitializeKVCache(num_blocks); });
  } catch (const std::bad_alloc&) {
    const kernels::AvailableMemory available = kernels::ReadAvailableMemory();
    throw ResourceError("cannot allocate the KV cache: out of memory (" + std::to_string(num_blocks) + " blocks of " +
                        std::to_string(PageSizeBytes()) + " bytes, " + std::to_string(available.bytes) +
                        " bytes left by " + available.bound + "); lower --num-kv-blocks or --kv-cache-memory");
  }
}

void TensorParallelExecutor::SetCancellation(const kernels::CancellationFlag* flag) {
  cancellation_ = flag;
  for (const std::unique_ptr<Worker>& worker : workers_) worker->SetCancellation(flag);
}

void TensorParallelExecutor::CopyBlockOut(int32_t block_id, std::span<std::byte> payload) {
  size_t begin = 0;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    const auto bytes = static_cast<size_t>(worker->PageSizeBytes());
    worker->CopyBlockOut(block_id, payload.subspan(begin, bytes));
    begin += bytes;
  }
}

void TensorParallelExecutor::CopyBlockIn(int32_t block_id, std::span<const std::byte> payload) {
  size_t begin = 0;
  for (const std::unique_ptr<Worker>& worker : workers_) {
    const auto bytes = static_cast<size_t>(worker->PageSizeBytes());
    worker->CopyBlockIn(block_id, payload.subspan(begin, bytes));
    begin += bytes;
  }
}

void TensorParallelExecutor::AddLoRA(size_t slot, const std::shared_ptr<const LoRAAdapter>& adapter) {
  const std::unique_ptr<WeightSource> weights = OpenWeights(config_);
  for (size_t i = slot; i < adapters_.size(); ++i) loaded_loras_.Forget(static_cast<int32_t>(i));
  const size_t num_adapters = std::exchange(adapters_, {adapters_.begin(), adapters_.begin() + slot}).size();
  // An exception that leaves a rank's function would end the engine.
  std::vector<std::exception_ptr> failures(workers_.size());
  ranks_->Run([&](int rank) {
    LoRALayers& layers = workers_[static_cast<size_t>(rank)]->lora_layers();
    for (size_t i = slot; i < num_adapters; ++i) layers.Unload(i);
    layers.Resize(slot);
    try {
      layers.Add(adapter, *weights);
    } catch (...) {
      failures[static_cast<size_t>(rank)] = std::current_exception();
    }
  });
  const auto drop = [&] {
    adapters_.resize(slot);
    ranks_->Run([&](int rank) { workers_[static_cast<size_t>(rank)]->lora_layers().Resize(slot); });
  };
  adapters_.push_back(adapter);
  for (const std::exception_ptr& failure : failures) {
    if (failure == nullptr) continue;
    drop();
    std::rethrow_exception(failure);
  }
  try {
    LoadLoRAs(std::array{static_cast<int32_t>(slot)});
  } catch (const ResourceError&) {
    drop();
    throw;
  }
}

void TensorParallelExecutor::LoadLoRAs(std::span<const int32_t> slots) {
  const LoRALru::Changes& changes = loaded_loras_.Use(slots);
  if (changes.empty()) return;
  // Unloading first frees memory for the others, and is done even if these do not fit.
  const auto layers_of = [this](int rank) -> LoRALayers& { return workers_[static_cast<size_t>(rank)]->lora_layers(); };
  ranks_->Run([&](int rank) {
    for (const int32_t slot : changes.unload) layers_of(rank).Unload(static_cast<size_t>(slot));
  });
  int64_t bytes = 0;
  for (const int32_t slot : changes.load) bytes += LoadedBytes(*adapters_[static_cast<size_t>(slot)], config_);
  const kernels::AvailableMemory available = kernels::ReadAvailableMemory();
  if (bytes > available.bytes) {
    for (const int32_t slot : changes.load) loaded_loras_.Forget(slot);
    throw ResourceError("adapter " + Escape(adapters_[static_cast<size_t>(changes.load[0])]->path) +
                        ": out of memory (" + std::to_string(bytes) + " bytes of " +
                        std::to_string(changes.load.size()) + " adapters, " + std::to_string(available.bytes) +
                        " bytes left by " + available.bound + ")");
  }
  // The ranks load together, so none of them may stop in the middle.
  for (const std::unique_ptr<Worker>& worker : workers_) worker->SetCancellation(nullptr);
  ranks_->Run([&](int rank) {
    for (const int32_t slot : changes.load) layers_of(rank).Load(static_cast<size_t>(slot));
  });
  for (const std::unique_ptr<Worker>& worker : workers_) worker->SetCancellation(cancellation_);
}

const ModelRunnerOutput& TensorParallelExecutor::ExecuteModel(const SchedulerOutput& scheduler_output) {
  LoadLoRAs(scheduler_output.lora_slots);
  ranks_->Run([&](int rank) {
    const auto index = static_cast<size_t>(rank);
    const auto start = std::chrono::steady_clock::now();
    workers_[index]->Execute(scheduler_output, rank == 0 ? &output_ : nullptr);
    rank_times_[index] += std::chrono::steady_clock::now() - start;
  });
  return output_;
}

}  // namespace vllm
