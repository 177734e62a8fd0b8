// Proposers for tests: drafts that are all right, all random, or right up to some token, and more than are allowed. A
// RecordingProposer remembers the outputs of a run without drafts, which the others then know in advance.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "engine/core/engine_core_client.h"
#include "engine/spec_decode/proposer.h"

namespace vllm::testing_support {

// The prompts and outputs of finished requests. Any thread.
class RecordedOutputs {
 public:
  void Add(std::vector<int32_t> prompt, std::vector<int32_t> output) {
    const std::lock_guard lock(mutex_);
    outputs_[std::move(prompt)].push_back(std::move(output));
  }
  // Appends at most `max` tokens that followed this prompt and output.
  void AppendNext(const DraftRequest& request, size_t max, std::vector<int32_t>& next) {
    const std::lock_guard lock(mutex_);
    const auto it = outputs_.find({request.prompt_token_ids.begin(), request.prompt_token_ids.end()});
    if (it == outputs_.end()) return;
    const auto& known = request.output_token_ids;
    for (const std::vector<int32_t>& output : it->second) {
      if (output.size() <= known.size() || !std::equal(known.begin(), known.end(), output.begin())) continue;
      const size_t count = std::min(max, output.size() - known.size());
      const auto begin = output.begin() + static_cast<std::ptrdiff_t>(known.size());
      next.insert(next.end(), begin, begin + static_cast<std::ptrdiff_t>(count));
      return;
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<int32_t>, std::vector<std::vector<int32_t>>> outputs_;
};

class RecordingProposer final : public Proposer {
 public:
  explicit RecordingProposer(std::shared_ptr<RecordedOutputs> recorded) : recorded_(std::move(recorded)) {}

  void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override {
    for (const DraftRequest& request : requests) {
      prompts_[request.request_id].assign(request.prompt_token_ids.begin(), request.prompt_token_ids.end());
      drafts.EndRequest();
    }
  }
  void Finish(RequestId request_id, std::span<const int32_t> output_token_ids) override {
    recorded_->Add(std::move(prompts_[request_id]), {output_token_ids.begin(), output_token_ids.end()});
    prompts_.erase(request_id);
  }

 private:
  std::shared_ptr<RecordedOutputs> recorded_;
  std::map<RequestId, std::vector<int32_t>> prompts_;
};

enum class DraftKind : uint8_t {
  kRight,     // the tokens of the recorded run, then random ones
  kRandom,    // random tokens
  kMixed,     // right up to a random position
  kOverlong,  // right, but many more than are allowed
};

class TestProposer final : public Proposer {
 public:
  TestProposer(DraftKind kind, int32_t vocab_size, std::shared_ptr<RecordedOutputs> recorded, uint32_t seed)
      : kind_(kind), vocab_size_(vocab_size), recorded_(std::move(recorded)), random_(seed) {}

  void Propose(std::span<const DraftRequest> requests, Drafts& drafts) override {
    for (const DraftRequest& request : requests) {
      std::vector<int32_t> tokens;
      size_t count = static_cast<size_t>(request.max_drafts);
      if (kind_ == DraftKind::kOverlong) count += 40;
      if (kind_ != DraftKind::kRandom) recorded_->AppendNext(request, count, tokens);
      if (kind_ == DraftKind::kMixed && !tokens.empty()) tokens.resize(random_() % tokens.size());
      while (tokens.size() < count)
        tokens.push_back(static_cast<int32_t>(random_() % static_cast<uint32_t>(vocab_size_)));
      for (const int32_t token : tokens) drafts.Add(token, 0.5f);
      drafts.EndRequest();
    }
  }

 private:
  DraftKind kind_;
  int32_t vocab_size_;
  std::shared_ptr<RecordedOutputs> recorded_;
  std::mt19937 random_;
};

// Returns `factory` with another proposer.
template <typename MakeProposer>
ExecutorFactory WithProposer(ExecutorFactory factory, MakeProposer make) {
  return [factory = std::move(factory), make = std::move(make)](const VllmConfig& config) {
    LoadedExecutor loaded = factory(config);
    loaded.proposer = make(config);
    return loaded;
  };
}

inline ExecutorFactory WithRecorder(ExecutorFactory factory, std::shared_ptr<RecordedOutputs> recorded) {
  return WithProposer(std::move(factory), [recorded = std::move(recorded)](const VllmConfig& /*config*/) {
    return std::make_unique<RecordingProposer>(recorded);
  });
}

inline ExecutorFactory WithDrafts(ExecutorFactory factory, DraftKind kind, std::shared_ptr<RecordedOutputs> recorded,
                                  uint32_t seed) {
  return WithProposer(std::move(factory), [kind, recorded = std::move(recorded), seed](const VllmConfig& config) {
    return std::make_unique<TestProposer>(kind, static_cast<int32_t>(config.model.vocab_size), recorded, seed);
  });
}

// Every draft that is proposed is verified.
inline SpeculativeConfig VerifyAll(int64_t num_speculative_tokens) {
  SpeculativeConfig config;
  config.method = SpeculativeMethod::kSuffix;
  config.num_speculative_tokens = num_speculative_tokens;
  config.adaptive = false;
  return config;
}

}  // namespace vllm::testing_support
