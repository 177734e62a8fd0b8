// Measures a chat on the engine of a running batch: its time to first token compared with that on an idle engine, and
// the batch's speed compared with that of the batch alone. Uses random weights in the shape of Qwen2.5-0.5B. The rows
// of the batch have 100 to 500 prompt tokens and 50 to 150 output tokens. Each turn of the chat adds 60 tokens to a
// conversation that begins with 1,000 tokens, gets an answer of 60 tokens, and is followed by a pause.
//
//   bench/interactive [--turns N] [--rounds N] [--pause SECONDS] [--streams N]
//
// A round runs the batch with the chat and then the batch alone. The speed counts each output token when it arrives,
// and the tokens of a prompt when the row's first output token arrives. Tokens that are computed again after a
// preemption therefore count once.
//
// Exits with 1 if the median time to first token is more than twice that of the idle engine, if the batch keeps less
// than 80 % of its speed, or if a token differs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "bench/shape_directory.h"
#include "engine/core/engine_core_client.h"
#include "engine/executor/make_executor.h"
#include "engine/frontend/llm_engine.h"
#include "engine/model_loader/hf/hf_config.h"

namespace vllm {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
using Tokens = std::vector<int32_t>;

struct Options {
  int turns = 4;
  int rounds = 2;
  double pause = 10;
  int64_t streams = 32;
};

Tokens RandomTokens(std::mt19937& random, int64_t count) {
  Tokens ids(static_cast<size_t>(count));
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % 150000);
  return ids;
}

SamplingParams Params(int64_t max_tokens, RequestOutputKind kind) {
  SamplingParams params;
  params.max_tokens = max_tokens;
  params.ignore_eos = true;
  params.temperature = 0.0;
  params.output_kind = kind;
  return params;
}

// A chat and an endless batch, either of which may be absent.
class Session {
 public:
  // Steps have at most `max_num_batched_tokens` tokens.
  Session(const std::string& directory, const Options& options, int64_t max_num_batched_tokens) : options_(options) {
    VllmConfig config;
    config.model = LoadModelConfig(directory);
    config.load.load_format = LoadFormat::kDummy;
    config.model.max_model_len = 8192;
    config.scheduler.max_num_seqs = options.streams;
    config.scheduler.max_num_batched_tokens = max_num_batched_tokens;
    config.cache.kv_cache_memory_bytes = int64_t{2} << 30;
    config.Finalize();
    engine_ = std::make_unique<LLMEngine>(config, nullptr, MakeThreadClient(config, MakeExecutor));
  }

  // Runs the turns of the chat, or else runs the batch for `seconds_without_chat`. Returns the batch's tokens per
  // second.
  double Run(bool with_batch, bool with_chat, double seconds_without_chat = 0) {
    runs_batch_ = with_batch;
    num_batch_tokens_ = 0;
    std::mt19937 random(static_cast<unsigned>(num_runs_++));  // another conversation in each run
    if (with_batch) WaitFor(20);                              // fill the batch
    const auto start = Clock::now();
    const int64_t before = num_batch_tokens_;
    Tokens conversation = RandomTokens(random, 1000);
    for (int turn = 0; with_chat && turn < options_.turns; ++turn) {
      const Tokens question = RandomTokens(random, 60);
      conversation.insert(conversation.end(), question.begin(), question.end());
      const Tokens answer = Ask(conversation, turn == 0);
      conversation.insert(conversation.end(), answer.begin(), answer.end());
      chat_.insert(chat_.end(), answer.begin(), answer.end());
      if (with_batch) WaitFor(options_.pause);
    }
    if (!with_chat) WaitFor(seconds_without_chat);
    const double seconds = Seconds(Clock::now() - start).count();
    const double speed = static_cast<double>(num_batch_tokens_ - before) / seconds;
    runs_batch_ = false;
    for (int64_t i = 0; i < num_rows_; ++i) engine_->AbortRequest("row " + std::to_string(i));
    while (engine_->HasUnfinishedRequests()) Step();
    seconds_ = seconds;
    return speed;
  }

  const Tokens& chat() const { return chat_; }
  const std::map<std::string, Tokens>& rows() const { return rows_; }
  double seconds() const { return seconds_; }  // of the last run
  // Returns the median of all turns except the first of each run. The first turn computes the whole conversation, and
  // the others find it in the prefix cache.
  double MedianFirstToken() const {
    std::vector<double> seconds = first_token_seconds_;
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }
  // Tokens per second of the chat, including the times to first token.
  double AnswerSpeed() const { return static_cast<double>(num_answer_tokens_) / answer_seconds_; }

 private:
  Tokens Ask(const Tokens& prompt, bool is_first_turn) {
    RequestOptions options;
    options.interactive = true;
    const std::string id = "chat " + std::to_string(num_questions_++);
    const auto start = Clock::now();
    engine_->AddRequest(id, prompt, Params(60, RequestOutputKind::kDelta), options);
    answer_.clear();
    asked_ = id;
    bool has_first = false;
    while (!asked_.empty()) {
      Step();
      if (!has_first && !answer_.empty()) {
        if (!is_first_turn) first_token_seconds_.push_back(Seconds(Clock::now() - start).count());
        has_first = true;
      }
    }
    answer_seconds_ += Seconds(Clock::now() - start).count();
    num_answer_tokens_ += static_cast<int64_t>(answer_.size());
    return answer_;
  }

  void WaitFor(double seconds) {
    const auto end = Clock::now() + Seconds(seconds);
    while (Clock::now() < end) Step();
  }

  void Step() {
    while (runs_batch_ && engine_->NumUnfinishedRequests() < 2 * options_.streams) {
      std::mt19937 random(static_cast<unsigned>(num_rows_));
      const auto num_prompt_tokens = static_cast<int64_t>(100 + random() % 401);
      const auto num_output_tokens = static_cast<int64_t>(50 + random() % 101);
      const std::string id = "row " + std::to_string(num_rows_++);
      num_prompt_tokens_[id] = num_prompt_tokens;
      engine_->AddRequest(id, RandomTokens(random, num_prompt_tokens),
                          Params(num_output_tokens, RequestOutputKind::kDelta));
    }
    for (const RequestOutput& output : engine_->Step(std::chrono::milliseconds(20))) {
      const Tokens& ids = output.outputs[0].token_ids;
      if (output.request_id == asked_) {
        answer_.insert(answer_.end(), ids.begin(), ids.end());
        if (output.finished) asked_.clear();
        continue;
      }
      Tokens& row = rows_[output.request_id];
      row.insert(row.end(), ids.begin(), ids.end());
      num_batch_tokens_ += static_cast<int64_t>(ids.size());
      if (row.size() == ids.size()) num_batch_tokens_ += num_prompt_tokens_[output.request_id];
    }
  }

  Options options_;
  std::unique_ptr<LLMEngine> engine_;
  bool runs_batch_ = false;
  int64_t num_rows_ = 0;
  int64_t num_questions_ = 0;
  int num_runs_ = 0;
  int64_t num_batch_tokens_ = 0;
  double seconds_ = 0;
  std::map<std::string, int64_t> num_prompt_tokens_;
  std::map<std::string, Tokens> rows_;
  std::string asked_;
  Tokens answer_, chat_;
  std::vector<double> first_token_seconds_;
  double answer_seconds_ = 0;
  int64_t num_answer_tokens_ = 0;
};

int Main(const Options& options) {
  const ShapeDirectory shape;
  const std::string directory = shape.path();
  // vllmcli batch uses 2,048 tokens by default, and 512 with --chat.
  Session idle(directory, options, 2048), batch(directory, options, 2048), both(directory, options, 512);
  for (int round = 0; round < options.rounds; ++round) idle.Run(false, true);
  std::vector<double> shares;
  for (int round = 0; round < options.rounds; ++round) {
    const double shared = both.Run(true, true);
    const double alone = batch.Run(true, false, both.seconds());
    shares.push_back(shared / alone);
    std::printf("batch: with the chat %.1f tokens/s, alone %.1f tokens/s: %.2f x\n", shared, alone, shares.back());
    std::fflush(stdout);
  }
  const double share = std::accumulate(shares.begin(), shares.end(), 0.0) / options.rounds;

  const double ratio = both.MedianFirstToken() / idle.MedianFirstToken();
  std::printf("time to first token of a turn: idle %.0f ms, with a batch %.0f ms: %.2f x\n",
              1000 * idle.MedianFirstToken(), 1000 * both.MedianFirstToken(), ratio);
  std::printf("answers: idle %.1f tokens/s, with a batch %.1f tokens/s\n", idle.AnswerSpeed(), both.AnswerSpeed());
  std::printf("batch keeps %.2f of its speed\n", share);
  bool same = idle.chat() == both.chat();
  for (const auto& [id, tokens] : both.rows()) {
    const auto other = batch.rows().find(id);
    if (other == batch.rows().end()) continue;
    // The last rows were aborted after different numbers of tokens.
    const size_t num_tokens = std::min(tokens.size(), other->second.size());
    same = same &&
           std::equal(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(num_tokens), other->second.begin());
  }
  std::printf("tokens of the chat and of the rows: %s\n", same ? "the same" : "different");
  return same && ratio <= 2 && share >= 0.8 ? 0 : 1;
}

}  // namespace
}  // namespace vllm

int main(int argc, char** argv) {
  vllm::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--turns") options.turns = std::max(2, std::atoi(argv[i + 1]));
    if (flag == "--rounds") options.rounds = std::max(1, std::atoi(argv[i + 1]));
    if (flag == "--pause") options.pause = std::atof(argv[i + 1]);
    if (flag == "--streams") options.streams = std::max(1, std::atoi(argv[i + 1]));
  }
  return vllm::Main(options);
}
