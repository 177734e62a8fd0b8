// Measures speculative decoding: tokens per second with and without it, in pairs, on texts that a real model would
// write. The model computes every token, but the texts are given: after each step, the sampled tokens are replaced with
// those of the text, and a draft counts as accepted if it equals them. So the result does not depend on whether a small
// model, or one with random weights, would do the task.
//
//   bench/speculation GGUF_FILE MT_BENCH_ANSWERS [--shape] [--method NAME] [--rounds N] [--only WORKLOAD]
//                    [--fixed] [--costs]
//
// GGUF_FILE gives the weights and the tokenizer. With --shape, the weights are random ones in the shape of
// Qwen2.5-0.5B. MT_BENCH_ANSWERS is mt_bench_reference_gpt-4.jsonl. --method is ngram, suffix or right. `right` drafts
// the answers themselves, so its ratio is what no method can exceed. The workloads:
//   code    a source file of this project, to be repeated with two names changed
//   json    a text about twenty people, to be turned into JSON
//   chat    the answers of GPT-4 to MT-bench, second turns after first turns
//   random  random tokens
//   rows    200 short texts to be turned into JSON objects, 16 at a time
// The first four have one stream. With --costs, prints only the time of a step with 0 to 31 drafts, all of which are
// rejected, as a multiple of the time of a step without drafts. Otherwise prints the medians of the ratio over all
// rounds, and how many drafts were accepted.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/median.h"
#include "bench/shape_directory.h"
#include "engine/core/engine_core.h"
#include "engine/executor/make_executor.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/gguf/tokenizer.h"
#include "engine/model_loader/hf/hf_config.h"

namespace vllm {
namespace {

using Clock = std::chrono::steady_clock;
using Tokens = std::vector<int32_t>;

struct Row {
  Tokens prompt;
  Tokens answer;
};

struct Workload {
  std::string name;
  std::vector<Row> rows;
  int64_t num_streams = 1;
};

// Runs the steps on the real executor and replaces the sampled tokens with those of the answers.
class ReplayExecutor final : public Executor {
 public:
  ReplayExecutor(const VllmConfig& config, const std::vector<Row>& rows)
      : inner_(MakeExecutor(config).executor), rows_(rows) {}

  int64_t PageSizeBytes() const override { return inner_->PageSizeBytes(); }
  std::vector<int64_t> KVGroupWindows() const override { return inner_->KVGroupWindows(); }
  int64_t NumStateBlocks() const override { return inner_->NumStateBlocks(); }
  int64_t DetermineAvailableMemory() override { return inner_->DetermineAvailableMemory(); }
  void InitializeKVCache(int64_t num_blocks) override { inner_->InitializeKVCache(num_blocks); }

  const ModelRunnerOutput& ExecuteModel(const SchedulerOutput& step) override {
    const ModelRunnerOutput& real = inner_->ExecuteModel(step);
    const CachedRequestData& cached = step.scheduled_cached_reqs;
    drafts_.clear();
    for (size_t i = 0; i < cached.size(); ++i) drafts_[cached.request_ids[i]] = cached.Drafts(i);
    output_.Clear();
    for (size_t i = 0; i < real.request_ids.size(); ++i) {
      const RequestId id = real.request_ids[i];
      output_.request_ids.push_back(id);
      output_.logprobs_index.push_back(-1);
      output_.num_accepted_drafts.push_back(0);
      if (real.sampled_offsets[i + 1] > real.sampled_offsets[i]) Replay(id);
      output_.sampled_offsets.push_back(output_.sampled_token_ids.size());
    }
    return output_;
  }

 private:
  void Replay(RequestId id) {
    const Tokens& answer = rows_[static_cast<size_t>(id - 1) % rows_.size()].answer;
    size_t& position = positions_[id];
    for (const int32_t draft : drafts_[id]) {
      if (position + 1 >= answer.size() || answer[position] != draft) break;
      output_.sampled_token_ids.push_back(answer[position++]);
      ++output_.num_accepted_drafts.back();
    }
    output_.sampled_token_ids.push_back(answer.at(position++));
  }

  std::unique_ptr<Executor> inner_;
  const std::vector<Row>& rows_;
  ModelRunnerOutput output_;
  std::map<RequestId, std::span<const int32_t>> drafts_;
  std::map<RequestId, size_t> positions_;
};

// Proposes tokens that are never right.
class WrongProposer final : public Proposer {
 public:
  void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override {
    for (const DraftRequest& request : requests) {
      for (int64_t i = 0; i < request.max_drafts; ++i) drafts.Add(1, 0.5f);
      drafts.EndRequest();
    }
  }
};

// Proposes the tokens of the answers.
class RightProposer final : public Proposer {
 public:
  explicit RightProposer(const std::vector<Row>& rows) : rows_(rows) {}

  void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override {
    for (const DraftRequest& request : requests) {
      const Tokens& answer = rows_[static_cast<size_t>(request.request_id - 1) % rows_.size()].answer;
      const size_t begin = request.output_token_ids.size();
      const size_t end = std::min(answer.size(), begin + static_cast<size_t>(request.max_drafts));
      for (size_t i = begin; i < end; ++i) drafts.Add(answer[i], 1.0f);
      drafts.EndRequest();
    }
  }

 private:
  const std::vector<Row>& rows_;
};

enum class Drafting : unsigned char { kNormal, kWrong, kRight };

struct Result {
  double tokens_per_second = 0;
  SpecDecodingStats stats;
};

// Counts the time of the steps that compute no prompt.
class Run {
 public:
  Run(VllmConfig config, const SpeculativeConfig& speculative, const Workload& workload,
      Drafting drafting = Drafting::kNormal)
      : workload_(workload) {
    config.speculative = speculative;
    config.scheduler.max_num_seqs = workload.num_streams;
    config.cache.enable_prefix_caching = false;
    engine_ = std::make_unique<EngineCore>(config, [&](const VllmConfig& sized) {
      LoadedExecutor loaded{std::make_unique<ReplayExecutor>(sized, workload.rows), {}};
      if (drafting == Drafting::kWrong) loaded.proposer = std::make_unique<WrongProposer>();
      if (drafting == Drafting::kRight) loaded.proposer = std::make_unique<RightProposer>(workload.rows);
      return loaded;
    });
  }

  // Runs all rows once.
  Result Measure() {
    EngineCoreOutputs outputs;
    double seconds = 0;
    int64_t num_tokens = 0;
    size_t next = 0;
    int64_t num_running = 0;
    while (next < workload_.rows.size() || engine_->HasUnfinishedRequests()) {
      for (; num_running < workload_.num_streams && next < workload_.rows.size(); ++num_running) {
        const Row& row = workload_.rows[next++];
        auto request = std::make_shared<EngineCoreRequest>();
        request->request_id = ++last_id_;
        request->prompt_token_ids = row.prompt;
        request->sampling_params.max_tokens = static_cast<int64_t>(row.answer.size());
        request->sampling_params.temperature = 0;
        request->sampling_params.ignore_eos = true;
        engine_->AddRequest(std::move(request));
      }
      const int64_t prompts_before = engine_->GetStats().num_prompt_tokens;
      const auto start = Clock::now();
      engine_->Step(outputs);
      const std::chrono::duration<double> time = Clock::now() - start;
      int64_t num_new = 0;
      for (size_t i = 0; i < outputs.size(); ++i) {
        num_new += static_cast<int64_t>(outputs[i].new_token_ids.size());
        num_running -= outputs[i].finish_reason == FinishReason::kNone ? 0 : 1;
      }
      // With several streams, prompts are part of the work.
      if (engine_->GetStats().num_prompt_tokens > prompts_before && workload_.num_streams == 1) continue;
      seconds += time.count();
      num_tokens += num_new;
    }
    engine_->Step(outputs);
    Result result;
    result.tokens_per_second = static_cast<double>(num_tokens) / seconds;
    result.stats = engine_->GetStats().spec_decoding;
    return result;
  }

 private:
  const Workload& workload_;
  std::unique_ptr<EngineCore> engine_;
  RequestId last_id_ = 0;
};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

class Workloads {
 public:
  Workloads(const tokenizer::Tokenizer& tokenizer, const std::string& answers) : tokenizer_(tokenizer) {
    Code();
    Json();
    Chat(answers);
    Random();
    Rows();
  }
  const std::vector<Workload>& all() const { return all_; }

 private:
  Row MakeRow(const std::string& prompt, const std::string& answer) const {
    return {tokenizer_.Encode(prompt, true), tokenizer_.Encode(answer, false)};
  }

  void Code() {
    Workload workload{"code", {}};
    for (const char* path : {"engine/sched/request_queue.cc", "engine/core/input_queue.cc"}) {
      const std::string code = ReadFile(std::string(VLLMCLI_SOURCE_DIR) + "/" + path);
      std::string edited = code;
      ReplaceAll(edited, "request", "sequence");
      ReplaceAll(edited, "block", "page");
      workload.rows.push_back(
          MakeRow("Rename request to sequence and block to page in this file, and reply with the "
                  "whole file.\n\n" +
                      code + "\n\n",
                  edited));
    }
    all_.push_back(std::move(workload));
  }

  struct Person {
    std::string name, city, job;
    int age = 0;
  };
  Person RandomPerson() {
    static const std::vector<std::string> kFirst = {"Ada",  "Boris", "Chiara", "Dmitri",
                                                    "Elif", "Farid", "Greta",  "Hiro"};
    static const std::vector<std::string> kLast = {"Okafor", "Lindqvist", "Marchetti", "Novak", "Tanaka", "Whitfield"};
    static const std::vector<std::string> kCities = {"Lisbon", "Tallinn", "Osaka", "Montevideo", "Ghent", "Nairobi"};
    static const std::vector<std::string> kJobs = {"civil engineer", "nurse", "baker", "tax adviser", "welder"};
    const auto pick = [this](const std::vector<std::string>& from) { return from[random_() % from.size()]; };
    return {pick(kFirst) + " " + pick(kLast), pick(kCities), pick(kJobs), static_cast<int>(20 + random_() % 50)};
  }
  static std::string Prose(const Person& p) {
    return p.name + ", who is " + std::to_string(p.age) + " years old, works as a " + p.job + " and has lived in " +
           p.city + " for some time. ";
  }
  static std::string Object(const Person& p) {
    return "{\"name\": \"" + p.name + "\", \"age\": " + std::to_string(p.age) + ", \"occupation\": \"" + p.job +
           "\", \"city\": \"" + p.city + "\"}";
  }

  void Json() {
    Workload workload{"json", {}};
    for (int i = 0; i < 2; ++i) {
      std::string prose, json = "[\n";
      for (int n = 0; n < 20; ++n) {
        const Person person = RandomPerson();
        prose += Prose(person);
        json += "  " + Object(person) + ",\n";
      }
      workload.rows.push_back(MakeRow("List the people in this text as JSON.\n\n" + prose + "\n\n", json + "]\n"));
    }
    all_.push_back(std::move(workload));
  }

  void Chat(const std::string& answers) {
    Workload workload{"chat", {}};
    std::istringstream lines(ReadFile(answers));
    for (std::string line; std::getline(lines, line) && workload.rows.size() < 8;) {
      const auto turns = nlohmann::json::parse(line).at("choices").at(0).at("turns");
      workload.rows.push_back(MakeRow("Question?\n\n", turns.at(0).get<std::string>()));
      workload.rows.push_back(MakeRow("Question?\n\n" + turns.at(0).get<std::string>() + "\n\nAnother question?\n\n",
                                      turns.at(1).get<std::string>()));
    }
    all_.push_back(std::move(workload));
  }

  void Random() {
    Workload workload{"random", {}};
    for (int i = 0; i < 2; ++i) {
      Row row;
      for (int n = 0; n < 300; ++n) row.prompt.push_back(static_cast<int32_t>(100 + random_() % 40000));
      for (int n = 0; n < 400; ++n) row.answer.push_back(static_cast<int32_t>(100 + random_() % 40000));
      workload.rows.push_back(std::move(row));
    }
    all_.push_back(std::move(workload));
  }

  void Rows() {
    Workload workload{"rows", {}, 16};
    for (int i = 0; i < 200; ++i) {
      const Person person = RandomPerson();
      workload.rows.push_back(MakeRow("Turn this into JSON: " + Prose(person) + "\n\n", Object(person) + "\n"));
    }
    all_.push_back(std::move(workload));
  }

  const tokenizer::Tokenizer& tokenizer_;
  std::mt19937 random_{7};
  std::vector<Workload> all_;
};

VllmConfig MakeConfig(const std::string& gguf, bool shape) {
  VllmConfig config;
  if (shape) {
    config.model = LoadModelConfig(ShapeDirectory().path());
    config.load.load_format = LoadFormat::kDummy;
  } else {
    config.model = LoadGgufConfig(gguf);
    config.load.load_format = LoadFormat::kGguf;
  }
  config.model.max_model_len = std::min<int64_t>(config.model.max_model_len, 8192);
  config.cache.kv_cache_memory_bytes = int64_t{1} << 30;
  config.Finalize();
  return config;
}

void PrintCosts(const VllmConfig& config, const Workload& workload) {
  std::printf("| rows | ms | ratio |\n|---|---|---|\n");
  double one_row = 0;
  for (const int64_t k : {0, 1, 2, 3, 4, 5, 6, 7, 8, 11, 15, 19, 23, 31}) {
    SpeculativeConfig speculative;
    speculative.method = k > 0 ? SpeculativeMethod::kSuffix : SpeculativeMethod::kOff;
    speculative.num_speculative_tokens = k;
    speculative.adaptive = false;
    const double milliseconds =
        1000 /
        Run(config, speculative, workload, k > 0 ? Drafting::kWrong : Drafting::kNormal).Measure().tokens_per_second;
    if (k == 0) one_row = milliseconds;
    std::printf("| %lld | %.2f | %.2f |\n", static_cast<long long>(k + 1), milliseconds, milliseconds / one_row);
  }
}

int Main(int argc, char** argv) {
  std::string gguf, answers, only;
  bool shape = false;
  bool costs = false;
  int rounds = 5;
  Drafting drafting = Drafting::kNormal;
  SpeculativeConfig on;
  on.method = SpeculativeMethod::kSuffix;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--shape") {
      shape = true;
    } else if (arg == "--costs") {
      costs = true;
    } else if (arg == "--fixed") {
      on.adaptive = false;
    } else if (arg == "--method" && i + 1 < argc) {
      const std::string method = argv[++i];
      on.method = method == "ngram" ? SpeculativeMethod::kNgram : SpeculativeMethod::kSuffix;
      if (method == "right") drafting = Drafting::kRight;
    } else if (arg == "--rounds" && i + 1 < argc) {
      rounds = std::atoi(argv[++i]);
    } else if (arg == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else {
      (gguf.empty() ? gguf : answers) = arg;
    }
  }
  if (answers.empty()) throw std::runtime_error("usage: speculation GGUF_FILE MT_BENCH_ANSWERS [options]");
  const auto tokenizer = LoadGgufTokenizer(GgufFile(gguf));
  const Workloads workloads(*tokenizer, answers);
  const VllmConfig config = MakeConfig(gguf, shape);
  if (costs) {
    Workload workload = workloads.all()[3];
    for (Row& row : workload.rows) row.answer.resize(100);
    PrintCosts(config, workload);
    return 0;
  }
  std::printf("| workload | tokens | off tokens/s | on tokens/s | ratio | drafted | accepted | tokens per step |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const Workload& workload : workloads.all()) {
    if (!only.empty() && only != workload.name) continue;
    size_t num_tokens = 0;
    for (const Row& row : workload.rows) num_tokens += row.answer.size();
    std::vector<double> off_speeds, on_speeds, ratios;
    Result last;
    for (int round = 0; round < rounds; ++round) {
      // New engines, because an old one would know the answers.
      Result off_result;
      for (const bool is_on : {round % 2 == 0, round % 2 != 0}) {
        const Result result = is_on ? Run(config, on, workload, drafting).Measure()
                                    : Run(config, SpeculativeConfig(), workload).Measure();
        (is_on ? last : off_result) = result;
      }
      const double off = off_result.tokens_per_second;
      off_speeds.push_back(off);
      on_speeds.push_back(last.tokens_per_second);
      ratios.push_back(last.tokens_per_second / off);
    }
    const SpecDecodingStats::Method& stats = last.stats.methods[static_cast<size_t>(on.method)];
    std::printf("| %s | %zu | %.1f | %.1f | %.2f | %lld | %lld | %.2f |\n", workload.name.c_str(), num_tokens,
                Median(off_speeds), Median(on_speeds), Median(ratios), static_cast<long long>(stats.num_draft_tokens),
                static_cast<long long>(stats.num_accepted_tokens), stats.MeanAcceptanceLength());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  try {
    return vllm::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "speculation: %s\n", error.what());
    return 2;
  }
}
