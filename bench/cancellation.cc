// Measures how long the engine or the program takes to stop. Cancels work at random moments, prints the latencies, and
// checks that a live engine still generates the same tokens afterwards. Uses random weights in the shape of
// Qwen2.5-0.5B or, with --shape 7b, of a 7B model.
//
//   bench/cancellation [--rounds N] [--shape 0.5b|7b] [--seed N]        cancels requests in a live engine
//   bench/cancellation --program PATH [--rounds N] [--shape ...]        sends SIGTERM to the program while it loads,
//                                                                       and while it processes a prompt
//
// Exits with 1 if, in any scenario, fewer than 99 % of the cancellations took effect within 100 ms (300 ms for 7b), if
// one took more than 300 ms, if a later token differed, or if the program did not exit with status 143.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/shape_directory.h"
#include "engine/core/engine_core_client.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/hf/hf_config.h"

extern char** environ;

namespace vllm {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

struct Options {
  int rounds = 25;
  std::string shape = "0.5b";
  std::string program;
  unsigned seed = 1;
};

struct Tally {
  std::vector<double> latencies;
  double limit = 100.0;

  void Add(double ms) { latencies.push_back(ms); }
  bool Print(const std::string& what) {
    std::sort(latencies.begin(), latencies.end());
    const auto in_time = std::count_if(latencies.begin(), latencies.end(), [&](double ms) { return ms <= limit; });
    std::printf("%-28s %4zu cancellations: median %6.1f ms, max %6.1f ms, %ld within %.0f ms\n", what.c_str(),
                latencies.size(), latencies[latencies.size() / 2], latencies.back(), static_cast<long>(in_time), limit);
    return static_cast<double>(in_time) >= 0.99 * static_cast<double>(latencies.size()) && latencies.back() <= 300.0;
  }
};

std::vector<int32_t> RandomPrompt(std::mt19937& random, int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % 150000);
  return ids;
}

// Returns the token ids that the engine generates for a few fixed requests.
std::map<std::string, std::vector<int32_t>> Probe(LLMEngine& engine) {
  std::mt19937 random(77);
  for (int i = 0; i < 3; ++i) {
    SamplingParams params;
    params.max_tokens = 6;
    params.ignore_eos = true;
    params.temperature = i == 0 ? 0.0 : 1.0;
    params.seed = static_cast<uint64_t>(i);
    params.output_kind = RequestOutputKind::kFinalOnly;
    engine.AddRequest("probe " + std::to_string(i), RandomPrompt(random, 20 + 30 * i), params);
  }
  std::map<std::string, std::vector<int32_t>> answers;
  while (engine.HasUnfinishedRequests()) {
    for (const RequestOutput& output : engine.Step()) {
      if (output.finished) answers[output.request_id] = output.outputs[0].token_ids;
    }
  }
  return answers;
}

bool CancelInLiveEngine(const Options& options, const std::string& directory, int64_t ranks) {
  VllmConfig config;
  config.model = LoadModelConfig(directory);
  config.load.load_format = LoadFormat::kDummy;
  config.model.max_model_len = 16384;
  config.parallel.tensor_parallel_size = ranks;
  config.cache.kv_cache_memory_bytes = int64_t{1} << 30;
  config.Finalize();
  LLMEngine engine(config, nullptr, MakeThreadClient(config, MakeExecutor));
  const auto expected = Probe(engine);
  std::mt19937 random(options.seed);
  bool good = true;
  for (const bool decodes : {false, true}) {
    Tally tally;
    if (options.shape == "7b") tally.limit = 300.0;
    for (int round = 0; round < options.rounds; ++round) {
      SamplingParams params;
      params.ignore_eos = true;
      params.output_kind = RequestOutputKind::kDelta;
      std::vector<std::string> ids;
      for (int i = 0; i < (decodes ? 32 : 1); ++i) {
        ids.push_back(std::to_string(i));
        engine.AddRequest(ids.back(), RandomPrompt(random, decodes ? 4 : 8000), params);
      }
      if (decodes) {
        // All 32 requests are decoding once each of them has generated a token.
        std::map<std::string, int> seen;
        while (seen.size() < ids.size()) {
          for (const RequestOutput& output : engine.Step()) ++seen[output.request_id];
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % (decodes ? 200'000 : 1'000'000)));
      const auto start = Clock::now();
      for (const std::string& id : ids) engine.AbortRequest(id);
      // The engine answers a utility call only between steps, so GetStats returns after the current step.
      engine.client().GetStats();
      tally.Add(Milliseconds(Clock::now() - start).count());
      while (engine.HasUnfinishedRequests()) engine.Step();
      if (Probe(engine) != expected) {
        std::printf("round %d: later tokens differ\n", round);
        good = false;
      }
    }
    const std::string what = decodes ? "decoding 32 streams" : "prompt of 8,000 tokens";
    good = tally.Print(what + ", -tp " + std::to_string(ranks)) && good;
  }
  return good;
}

// Starts the program and sends it SIGTERM after `wait`. Returns the milliseconds from the signal to the exit, or 1e9 if
// the program does not exit with status 143.
double StopProgram(const std::vector<std::string>& words, std::chrono::microseconds wait) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) != 0) {
    throw std::runtime_error("cannot start " + words[0]);
  }
  posix_spawn_file_actions_destroy(&actions);
  std::this_thread::sleep_for(wait);
  const auto start = Clock::now();
  kill(pid, SIGTERM);
  int status = 0;
  waitpid(pid, &status, 0);
  const double ms = Milliseconds(Clock::now() - start).count();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 128 + SIGTERM) {
    std::printf("program stopped with wait status %d (expected exit status 143)\n", status);
    return 1e9;
  }
  return ms;
}

bool StopPrograms(const Options& options, const std::string& directory) {
  std::mt19937 random(options.seed);
  std::string ids;
  for (int i = 0; i < 8000; ++i) ids += std::to_string(random() % 150000) + ",";
  ids.pop_back();
  bool good = true;
  for (const char* ranks : {"1", "2"}) {
    for (const bool loading : {true, false}) {
      Tally tally;
      if (options.shape == "7b") tally.limit = 300.0;
      for (int round = 0; round < options.rounds; ++round) {
        const int64_t low = loading ? 20'000 : 4'000'000;
        constexpr int64_t kSpan = 2'000'000;
        tally.Add(StopProgram({options.program, "complete", "-m", directory, "--load-format", "dummy", "-tp", ranks,
                               "--packed-cache-size", "0", "--prompt-ids", ids, "--json"},
                              std::chrono::microseconds(low + static_cast<int64_t>(random() % kSpan))));
      }
      good = tally.Print(std::string(loading ? "SIGTERM at start" : "SIGTERM in prefill") + ", -tp " + ranks) && good;
    }
  }
  return good;
}

int Run(const Options& options) {
  const ShapeDirectory directory(options.shape == "7b" ? ShapeDirectory::Shape::k7B : ShapeDirectory::Shape::k05B);
  bool good = true;
  if (options.program.empty()) {
    for (const int64_t ranks : {1, 2}) good = CancelInLiveEngine(options, directory.path(), ranks) && good;
  } else {
    good = StopPrograms(options, directory.path());
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  vllm::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--rounds") options.rounds = std::max(1, std::atoi(argv[i + 1]));
    if (name == "--shape") options.shape = argv[i + 1];
    if (name == "--program") options.program = argv[i + 1];
    if (name == "--seed") options.seed = static_cast<unsigned>(std::atoi(argv[i + 1]));
  }
  return vllm::Run(options);
}
