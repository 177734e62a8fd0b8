// Measures the machine's current limits and prints them as one line of JSON.
//   machine_probe [THREADS]
// THREADS threads (default 2) measure at the same time, and each figure is the sum over the threads. `read` is in bytes
// per second, `clock` in cycles per second. The other rates are in multiplies and adds per second, each counted as one
// operation. `bfloat16` must be half of `int8` on CPUs that start as many of these instructions per cycle. CPUs with
// AMX also have `amx_bfloat16` and `amx_int8`. `cpu` names the model of CPU.
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "bench/machine_limits.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/tuning/kernel_variants.h"

namespace vllm {
namespace {

struct Limits {
  double read = 0, clock = 0, fma = 0, bfloat16 = 0, int8 = 0, amx_bfloat16 = 0, amx_int8 = 0;
};

Limits Measure(int num_threads) {
  Limits sum;
  std::mutex mutex;
  std::barrier sync_point(num_threads);
  const auto add = [&](double& figure, auto&& measure) {
    sync_point.arrive_and_wait();
    const double value = measure();
    const std::lock_guard lock(mutex);
    figure += value;
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < num_threads; ++i) {
    threads.emplace_back([&] {
      const kernels::Isa isa = BenchIsa();
      add(sum.read, [] { return ReadBandwidth(3.0); });
      add(sum.clock, [] { return ClockRate(); });
      add(sum.fma, [isa] { return PeakRate(isa, Instruction::kFma); });
      add(sum.bfloat16, [isa] { return PeakRate(isa, Instruction::kDotBFloat16); });
      add(sum.int8, [isa] { return PeakRate(isa, Instruction::kDotInt8); });
      add(sum.amx_bfloat16, [isa] { return PeakRate(isa, Instruction::kTileBFloat16); });
      add(sum.amx_int8, [isa] { return PeakRate(isa, Instruction::kTileInt8); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return sum;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  const int num_threads = argc > 1 ? std::atoi(argv[1]) : 2;
  if (argc > 2 || num_threads < 1 || num_threads > 1024) {
    std::fprintf(stderr, "usage: machine_probe [THREADS]\n");
    return 2;
  }
  const vllm::Limits limits = vllm::Measure(num_threads);
  std::printf(
      "{\"cpu\": \"%s\", \"threads\": %d, \"read\": %.4g, \"clock\": %.4g, \"fma\": %.4g, \"bfloat16\": %.4g, "
      "\"int8\": %.4g",
      vllm::kernels::CpuModel().c_str(), num_threads, limits.read, limits.clock / num_threads, limits.fma,
      limits.bfloat16, limits.int8);
  if (limits.amx_int8 > 0.0) {
    std::printf(", \"amx_bfloat16\": %.4g, \"amx_int8\": %.4g", limits.amx_bfloat16, limits.amx_int8);
  }
  std::printf("}\n");
}
