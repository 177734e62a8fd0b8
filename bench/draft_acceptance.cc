// Measures how many tokens of a draft model are accepted by three rules. The target model answers questions at a given
// temperature; both models then give their distributions p (target) and q (draft) after each token of the answers.
//
//   bench/draft_acceptance TARGET DRAFT QUESTIONS [--temperature T] [--num-questions N]
//
// TARGET and DRAFT are GGUF files or Hugging Face directories with the same vocabulary. TARGET has the tokenizer.
// QUESTIONS is a JSONL file with "turns", such as mt_bench_question.jsonl. Prints the mean over all tokens of:
//   p/q           sum of min(p, q): rejection sampling with drafts drawn from q, as in vLLM
//   most probable p(argmax q): the draft is the token that q finds most probable. vllmcli does this.
//   same number   p and q are inverted at the same random number: the probability that both give the same token
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/core/engine_core.h"
#include "engine/executor/make_executor.h"
#include "engine/model_loader/gguf/config.h"
#include "engine/model_loader/gguf/tokenizer.h"
#include "engine/model_loader/hf/hf_config.h"
#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kAnswerTokens = 64;

VllmConfig MakeConfig(const std::string& path) {
  VllmConfig config;
  const bool is_gguf = !std::filesystem::is_directory(path);
  config.model = is_gguf ? LoadGgufConfig(path) : LoadModelConfig(path);
  config.load.load_format = is_gguf ? LoadFormat::kGguf : LoadFormat::kAuto;
  config.model.max_model_len = std::min<int64_t>(config.model.max_model_len, 2048);
  config.cache.kv_cache_memory_bytes = int64_t{256} << 20;
  config.Finalize();
  return config;
}

class Model {
 public:
  explicit Model(const std::string& path) : vocab_size_(MakeConfig(path).model.vocab_size) {
    engine_ = std::make_unique<EngineCore>(MakeConfig(path), MakeExecutor);
  }

  Tokens Generate(const Tokens& prompt, double temperature, uint64_t seed) {
    SamplingParams params;
    params.temperature = temperature;
    params.seed = seed;
    params.max_tokens = kAnswerTokens;
    params.ignore_eos = true;
    Tokens answer;
    Run(prompt, params, [&](const EngineCoreOutput& output) {
      answer.insert(answer.end(), output.new_token_ids.begin(), output.new_token_ids.end());
    });
    return answer;
  }

  // Returns the distributions after the tokens first - 1, first, ... at this temperature. [num_positions][vocab_size]
  std::vector<std::vector<double>> Distributions(const Tokens& tokens, size_t first, double temperature) {
    SamplingParams params;
    params.temperature = 0;
    params.max_tokens = 1;
    params.prompt_logprobs = vocab_size_;
    std::vector<std::vector<double>> all;
    Run(tokens, params, [&](const EngineCoreOutput& output) {
      const Logprobs& logprobs = output.prompt_logprobs;
      for (size_t i = first - 1; i < logprobs.num_positions(); ++i) {
        std::vector<double>& distribution = all.emplace_back(static_cast<size_t>(vocab_size_), 0.0);
        double sum = 0;
        // Entry 0 is the token of the prompt, which is among the others as well.
        for (size_t k = 1; k < logprobs.width; ++k) {
          const size_t at = i * logprobs.width + k;
          double& weight = distribution[static_cast<size_t>(logprobs.token_ids[at])];
          weight = std::exp(static_cast<double>(logprobs.logprobs[at]) / temperature);
          sum += weight;
        }
        for (double& weight : distribution) weight /= sum;
      }
    });
    return all;
  }

 private:
  template <typename OnOutput>
  void Run(const Tokens& prompt, const SamplingParams& params, OnOutput on_output) {
    auto request = std::make_shared<EngineCoreRequest>();
    request->request_id = ++last_id_;
    request->prompt_token_ids = prompt;
    request->sampling_params = params;
    engine_->AddRequest(std::move(request));
    EngineCoreOutputs outputs;
    while (engine_->HasRequests()) {
      engine_->Step(outputs);
      for (size_t i = 0; i < outputs.size(); ++i) on_output(outputs[i]);
    }
  }

  int64_t vocab_size_;
  std::unique_ptr<EngineCore> engine_;
  RequestId last_id_ = 0;
};

struct Acceptance {
  double rejection_sampling = 0;
  double most_probable = 0;
  double same_number = 0;

  void Add(const std::vector<double>& p, const std::vector<double>& q) {
    double p_end = 0;
    double q_end = 0;
    for (size_t id = 0; id < std::min(p.size(), q.size()); ++id) {
      rejection_sampling += std::min(p[id], q[id]);
      const double begin = std::max(p_end, q_end);
      p_end += p[id];
      q_end += q[id];
      same_number += std::max(0.0, std::min(p_end, q_end) - begin);
    }
    most_probable += p[static_cast<size_t>(std::max_element(q.begin(), q.end()) - q.begin())];
  }
};

int Main(const std::vector<std::string>& arguments) {
  std::vector<std::string> paths;
  double temperature = 1.0;
  size_t num_questions = 20;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--temperature" && i + 1 < arguments.size()) {
      temperature = std::stod(arguments[++i]);
    } else if (arguments[i] == "--num-questions" && i + 1 < arguments.size()) {
      num_questions = std::stoul(arguments[++i]);
    } else {
      paths.push_back(arguments[i]);
    }
  }
  if (paths.size() != 3) throw std::runtime_error("usage: draft_acceptance TARGET DRAFT QUESTIONS [options]");
  const std::unique_ptr<tokenizer::Tokenizer> tokenizer = std::filesystem::is_directory(paths[0])
                                                              ? tokenizer::LoadTokenizer(paths[0])
                                                              : LoadGgufTokenizer(GgufFile(paths[0]));
  Model target(paths[0]);
  Model draft(paths[1]);
  Acceptance sum;
  size_t num_tokens = 0;
  std::ifstream questions(paths[2]);
  uint64_t seed = 0;
  for (std::string line; seed < num_questions && std::getline(questions, line); ++seed) {
    Tokens tokens = tokenizer->Encode(nlohmann::json::parse(line).at("turns").at(0).get<std::string>(), true);
    const size_t num_prompt_tokens = tokens.size();
    const Tokens answer = target.Generate(tokens, temperature, seed);
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    const auto p = target.Distributions(tokens, num_prompt_tokens, temperature);
    const auto q = draft.Distributions(tokens, num_prompt_tokens, temperature);
    for (size_t i = 0; i < p.size(); ++i) sum.Add(p[i], q[i]);
    num_tokens += p.size();
  }
  const auto mean = [num_tokens](double value) { return value / static_cast<double>(num_tokens); };
  std::printf("%zu tokens at temperature %.2f: p/q %.3f, most probable %.3f, same number %.3f\n", num_tokens,
              temperature, mean(sum.rejection_sampling), mean(sum.most_probable), mean(sum.same_number));
  return 0;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  try {
    return vllm::Main({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "draft_acceptance: %s\n", error.what());
    return 2;
  }
}
