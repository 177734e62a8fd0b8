// Measures what the KV cache on disk saves, with random weights in the shape of Qwen2.5-0.5B.
//
//   bench/kv_disk_cache [--tokens N] [--rounds N] [--rows N] [--prefix N]
//
// 1. The time to first token of a new engine for a prompt of N tokens (4000): computed, read from files in memory (the
//    page cache), and read from the disk. Prints the median of the rounds, and the ratio to computing.
// 2. A batch of N rows (500) with the same first N tokens (2000) that runs twice, each time in a new engine. Prints the
//    numbers of computed and loaded prompt tokens and the times.
// Exits with 1 if a token differs, or if the second batch computes a block of the prefix.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/median.h"
#include "bench/shape_directory.h"
#include "engine/core/engine_core_client.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/hf/hf_config.h"

namespace vllm {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int64_t tokens = 4000;
  int64_t rounds = 5;
  int64_t rows = 500;
  int64_t prefix = 2000;
};

std::vector<int32_t> RandomTokens(std::mt19937& random, int64_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % 150000);
  return ids;
}

std::unique_ptr<LLMEngine> NewEngine(const ShapeDirectory& shape, const std::string& cache) {
  VllmConfig config;
  config.model = LoadModelConfig(shape.path());
  config.load.load_format = LoadFormat::kDummy;
  config.model.max_model_len = 8192;
  config.cache.kv_cache_memory_bytes = int64_t{1} << 30;
  config.Finalize();
  if (!cache.empty()) {
    config.kv_disk_cache = {
        .directory = cache, .max_bytes = int64_t{8} << 30, .model_identity = "bench", .label = "bench"};
  }
  auto client = MakeThreadClient(config, MakeExecutor);
  if (const std::string& why = client->ready().kv_disk_cache_failure; !why.empty()) throw std::runtime_error(why);
  return std::make_unique<LLMEngine>(config, nullptr, std::move(client));
}

SamplingParams Greedy(int64_t max_tokens) {
  SamplingParams params;
  params.temperature = 0.0;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  params.output_kind = RequestOutputKind::kFinalOnly;
  return params;
}

using Answers = std::map<std::string, std::vector<int32_t>>;

Answers Drain(LLMEngine& engine) {
  Answers answers;
  while (engine.HasUnfinishedRequests()) {
    for (const RequestOutput& output : engine.Step()) {
      if (output.finished) answers[output.request_id] = output.outputs.at(0).token_ids;
    }
  }
  return answers;
}

// Returns the time from the request to its first token, in seconds.
double FirstToken(LLMEngine& engine, const std::vector<int32_t>& prompt, Answers& answers) {
  const auto start = Clock::now();
  engine.AddRequest("prompt", prompt, Greedy(1));
  answers = Drain(engine);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Writes all files in the directory to the disk, and removes them from the page cache.
void DropFromMemory(const std::string& directory) {
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const int fd = open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
  }
}

bool MeasureFirstToken(const Options& options, const ShapeDirectory& shape, const std::string& cache) {
  std::mt19937 random(1);
  const std::vector<int32_t> prompt = RandomTokens(random, options.tokens);
  bool good = true;
  std::vector<double> computed;
  std::vector<double> from_memory;
  std::vector<double> from_disk;
  for (int64_t round = 0; round < options.rounds; ++round) {
    Answers expected;
    computed.push_back(FirstToken(*NewEngine(shape, ""), prompt, expected));
    Answers answers;
    if (round == 0) {
      FirstToken(*NewEngine(shape, cache), prompt, answers);
      good &= answers == expected;
    }
    from_memory.push_back(FirstToken(*NewEngine(shape, cache), prompt, answers));
    good &= answers == expected;
    DropFromMemory(cache);
    from_disk.push_back(FirstToken(*NewEngine(shape, cache), prompt, answers));
    good &= answers == expected;
  }
  const double base = Median(computed);
  std::printf("time to first token, prompt of %ld tokens, %ld rounds\n", static_cast<long>(options.tokens),
              static_cast<long>(options.rounds));
  std::printf("  computed                   %8.1f ms\n", 1e3 * base);
  std::printf("  loaded, files in memory    %8.1f ms  1/%.1f\n", 1e3 * Median(from_memory), base / Median(from_memory));
  std::printf("  loaded from the disk       %8.1f ms  1/%.1f\n", 1e3 * Median(from_disk), base / Median(from_disk));
  return good;
}

bool MeasureBatch(const Options& options, const ShapeDirectory& shape, const std::string& cache) {
  std::mt19937 random(2);
  const std::vector<int32_t> prefix = RandomTokens(random, options.prefix);
  std::vector<std::vector<int32_t>> prompts;
  for (int64_t i = 0; i < options.rows; ++i) {
    prompts.push_back(prefix);
    const std::vector<int32_t> tail = RandomTokens(random, 20);
    prompts.back().insert(prompts.back().end(), tail.begin(), tail.end());
  }
  bool good = true;
  Answers first;
  std::printf("batch of %ld rows with the same first %ld tokens, 20 more each, 8 generated\n",
              static_cast<long>(options.rows), static_cast<long>(options.prefix));
  for (int run = 1; run <= 2; ++run) {
    const auto engine = NewEngine(shape, cache);
    const auto start = Clock::now();
    for (size_t i = 0; i < prompts.size(); ++i) engine->AddRequest(std::to_string(i), prompts[i], Greedy(8));
    const Answers answers = Drain(*engine);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const SchedulerStats& stats = engine->stats();
    std::printf("  run %d: %8.2f s, %ld prompt tokens computed, %ld loaded\n", run, seconds,
                static_cast<long>(stats.num_prompt_tokens), static_cast<long>(stats.kv_transfer.num_loaded_tokens));
    if (run == 1) {
      first = answers;
      continue;
    }
    good &= answers == first;
    // A row computes at most an incomplete block and its last token.
    good &= stats.num_prompt_tokens <= options.rows * 36;
  }
  return good;
}

int Main(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::map<std::string, int64_t*> values = {{"--tokens", &options.tokens},
                                                    {"--rounds", &options.rounds},
                                                    {"--rows", &options.rows},
                                                    {"--prefix", &options.prefix}};
    const auto value = values.find(arguments[i]);
    if (value == values.end() || i + 1 == arguments.size()) {
      std::fprintf(stderr, "usage: kv_disk_cache [--tokens N] [--rounds N] [--rows N] [--prefix N]\n");
      return 2;
    }
    *value->second = std::stoll(arguments[i + 1]);
  }
  const ShapeDirectory shape;
  bool good = MeasureFirstToken(options, shape, shape.path() + "/first_token");
  if (options.rows > 0) good &= MeasureBatch(options, shape, shape.path() + "/batch");
  if (!good) std::fprintf(stderr, "kv_disk_cache: the tokens differ, or a loaded block was computed\n");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) { return vllm::Main({argv + 1, argv + argc}); }
