#include "engine/frontend/llm_engine.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include "engine/config/errors.h"
#include "engine/core/engine_monitor.h"
#include "engine/frontend/admission_queue.h"
#include "engine/frontend/input_processor.h"
#include "engine/frontend/output_memory.h"
#include "engine/frontend/output_processor.h"
#include "engine/frontend/parent_request.h"
#include "engine/lora/lora_adapter.h"
#include "engine/structured_output/compiler/grammar_compiler.h"

namespace vllm {
namespace {

// A request whose grammar is being compiled (WAITING_FOR_FSM in vLLM). Its sequences do not have the grammar yet.
struct HeldRequest {
  std::string request_id;
  std::vector<std::shared_ptr<EngineCoreRequest>> sequences;
  OutputMemory memory;
  AdmissionQueue::Rules rules;
  GrammarFuturePtr grammar;  // null: not constrained
};

}  // namespace

struct LLMEngine::Impl {
  Impl(const VllmConfig& final_config, std::shared_ptr<const tokenizer::Tokenizer> shared_tokenizer,
       std::unique_ptr<EngineCoreClient> engine_core_client)
      : config(final_config),
        tokenizer(std::move(shared_tokenizer)),
        client(std::move(engine_core_client)),
        max_output_memory(config.max_output_memory_bytes.value_or(
            DefaultMaxOutputMemory(client->ready().spare_memory_bytes, client->ready().max_model_len))),
        input_processor(config, client->ready().max_model_len, tokenizer.get(), max_output_memory),
        admission_queue(max_output_memory),
        output_processor(tokenizer.get()) {
    input_processor.grammar_compiler().SetNotify([this] { client->Interrupt(); });
    config.max_output_memory_bytes = max_output_memory;
    config.model.max_model_len = client->ready().max_model_len;
    config.cache.num_blocks = client->ready().num_blocks;
  }

  // Returns true if the other sequences should wait for the first token of the first sequence: either so that they find
  // the prompt in the prefix cache, or because only the first sequence computes the prompt logprobs, which the
  // request's first output must contain.
  bool StartsFirstAlone(const ProcessedInput& input) const {
    const bool can_share = config.cache.enable_prefix_caching &&
                           static_cast<int64_t>(input.prompt_token_ids.size()) > config.cache.block_size;
    return can_share || input.params.prompt_logprobs.has_value();
  }

  // Sends the sequences that may enter the engine now. Throws EngineDeadError.
  void SubmitReady() {
    admission_queue.TakeReady(ready_requests);
    for (EngineCoreRequestPtr& request : ready_requests) client->AddRequest(std::move(request));
  }

  // Queues a request whose grammar, if it has one, is compiled. Rejects it if the grammar is not valid, or does not
  // allow the prior output tokens. Returns false if it is rejected.
  bool Release(HeldRequest request) {
    if (request.grammar != nullptr) {
      std::string error = request.grammar->error();
      for (const auto& sequence : request.sequences) sequence->grammar = request.grammar->grammar();
      if (error.empty() && !output_processor.SetConstraint(request.request_id, *request.sequences.front())) {
        error = "prior_output_token_ids: structured_outputs does not allow these tokens";
      }
      if (!error.empty()) {
        output_processor.RejectRequest(request.request_id, error);
        return false;
      }
    }
    admission_queue.Add(request.request_id, {request.sequences.begin(), request.sequences.end()}, request.memory,
                        request.rules);
    return true;
  }

  // Releases the requests whose grammars are compiled.
  void ReleaseCompiled() {
    for (auto it = held_requests.begin(); it != held_requests.end();) {
      if (!it->grammar->is_done()) {
        ++it;
        continue;
      }
      Release(std::move(*it));
      it = held_requests.erase(it);
    }
    input_processor.grammar_compiler().Trim();
  }

  void Unhold(const std::string& request_id) {
    std::erase_if(held_requests, [&](const HeldRequest& request) { return request.request_id == request_id; });
    PublishHeld();
  }

  // Tells viewers how many sequences are held, which is returned.
  int64_t PublishHeld() {
    int64_t num_held = 0;
    for (const HeldRequest& request : held_requests) num_held += static_cast<int64_t>(request.sequences.size());
    if (EngineMonitor* monitor = client->monitor()) monitor->SetNumHeldReqs(num_held);
    return num_held;
  }

  // Receives the engine's outputs. Waits only if requests are running and no output of an aborted request is pending.
  // Throws EngineDeadError.
  void ReceiveOutputs(std::chrono::milliseconds timeout) {
    bool wait = !output_processor.HasPendingOutputs() && output_processor.num_running() > 0;
    if (wait && held_requests.size() == output_processor.num_running()) {
      // The engine has no request. Its client may not be able to wait. The first grammar is compiled before the others.
      input_processor.grammar_compiler().WaitUntil(*held_requests.front().grammar,
                                                   std::chrono::steady_clock::now() + timeout);
      wait = false;
    }
    client->GetOutputs(engine_core_outputs, wait ? timeout : std::chrono::milliseconds(0));
    stats = engine_core_outputs.stats;
  }

  // Reacts to the outputs: sends aborts, and the sequences that may enter the engine now. Throws EngineDeadError.
  void Respond(const ProcessedOutputs& processed) {
    admission_queue.Update(engine_core_outputs);
    for (const RequestOutput& output : processed.request_outputs) {
      if (output.finished) admission_queue.Remove(output.request_id);
    }
    if (!processed.reqs_to_abort.empty()) client->AbortRequests(processed.reqs_to_abort, AbortUrgency::kAfterStep);
    SubmitReady();
  }

  // Throws EngineDeadError, or a RequestError if the id belongs to an unfinished request.
  void CheckId(const std::string& request_id) const;
  // Queues a validated request. Throws as LLMEngine::AddRequest does.
  void Add(const std::string& request_id, ProcessedInput input, const RequestOptions& options);

  VllmConfig config;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  std::unique_ptr<EngineCoreClient> client;
  int64_t max_output_memory;
  InputProcessor input_processor;
  AdmissionQueue admission_queue;
  OutputProcessor output_processor;
  std::deque<HeldRequest> held_requests;  // in the order in which they were added
  RequestId next_request_id = 1;
  EngineCoreOutputs engine_core_outputs;
  std::vector<EngineCoreRequestPtr> ready_requests;
  SchedulerStats stats;
  SchedulerStats stats_at_last_request;
  int64_t num_last_prompt_tokens = 0;
  std::optional<std::string> death_cause;
};

LLMEngine::LLMEngine(const VllmConfig& config, std::shared_ptr<const tokenizer::Tokenizer> tokenizer,
                     std::unique_ptr<EngineCoreClient> client)
    : impl_(std::make_unique<Impl>(config, std::move(tokenizer), std::move(client))) {}

LLMEngine::~LLMEngine() = default;

void LLMEngine::SetReasoningFormat(std::shared_ptr<const ReasoningFormat> format) {
  impl_->input_processor.SetReasoningFormat(std::move(format));
}

void LLMEngine::AddRequest(const std::string& request_id, const Prompt& prompt, const SamplingParams& params,
                           const RequestOptions& options) {
  impl_->CheckId(request_id);
  const ModelConfig& model = impl_->config.model;
  if (!model.can_generate) throw RequestError("prompt: the model generates no text (" + model.architecture + ")");
  impl_->Add(request_id, impl_->input_processor.Process(request_id, prompt, params, options.prior_output_token_ids),
             options);
}

void LLMEngine::AddPoolingRequest(const std::string& request_id, const PoolingPrompt& prompt,
                                  const PoolingParams& params, const RequestOptions& options) {
  impl_->CheckId(request_id);
  impl_->Add(request_id, impl_->input_processor.ProcessPooling(request_id, prompt, params), options);
}

void LLMEngine::AddLoRA(std::shared_ptr<const LoRAAdapter> adapter) {
  std::vector<std::shared_ptr<const LoRAAdapter>>& adapters = impl_->config.lora.adapters;
  const int32_t slot = SlotOf(adapters, adapter->name);
  if (slot >= 0 && adapters[static_cast<size_t>(slot)]->digest == adapter->digest) return;
  impl_->client->AddLoRA(adapters.size(), adapter);
  adapters.push_back(adapter);
  impl_->input_processor.AddLoRA(std::move(adapter));
}

void LLMEngine::Impl::CheckId(const std::string& request_id) const {
  if (death_cause) throw EngineDeadError(*death_cause);
  if (output_processor.Contains(request_id)) {
    throw RequestError("request_id: already in use by an unfinished request");
  }
}

void LLMEngine::Impl::Add(const std::string& request_id, ProcessedInput input, const RequestOptions& options) {
  input_processor.SetLoRA(options.lora, input);
  const auto num_prompt_tokens = static_cast<int64_t>(input.prompt_token_ids.size());
  stats_at_last_request = stats;
  num_last_prompt_tokens = num_prompt_tokens;
  const RequestId first_child_id = next_request_id;
  next_request_id += static_cast<RequestId>(input.params.n);
  const SteadyTime arrival_time = std::chrono::steady_clock::now();
  const OutputMemory memory = EstimateOutputMemory(input.params, num_prompt_tokens, config.model.vocab_size);
  const bool first_alone = StartsFirstAlone(input);
  HeldRequest request = {.request_id = request_id,
                         .sequences = FanOut(input, options, first_child_id, arrival_time),
                         .memory = memory,
                         .rules = {.first_alone = first_alone, .regardless_of_memory = options.interactive},
                         .grammar = std::move(input.grammar)};
  try {
    output_processor.AddRequest(
        std::make_unique<ParentRequest>(request_id, std::move(input), first_child_id, arrival_time));
    if (request.grammar != nullptr && !request.grammar->is_done()) {
      held_requests.push_back(std::move(request));
      PublishHeld();
    } else if (Release(std::move(request))) {
      SubmitReady();
    } else {
      client->Interrupt();
    }
  } catch (...) {
    // The exception tells the caller that the request was not added, so the request must not produce an output.
    Unhold(request_id);
    output_processor.RemoveRequest(request_id);
    admission_queue.Remove(request_id);
    throw;
  }
}

void LLMEngine::AbortRequest(const std::string& request_id) {
  if (!impl_->output_processor.Contains(request_id)) return;
  const std::vector<RequestId> reqs_to_abort = impl_->output_processor.AbortRequest(request_id);
  impl_->Unhold(request_id);
  impl_->admission_queue.Remove(request_id);
  impl_->client->AbortRequests(reqs_to_abort, AbortUrgency::kPrompt);
  impl_->client->Interrupt();
}

const std::vector<RequestOutput>& LLMEngine::Step(std::chrono::milliseconds timeout) {
  impl_->engine_core_outputs.Clear();
  const auto unless_dead = [&](auto&& action) {
    if (impl_->death_cause) return;
    try {
      action();
    } catch (const EngineDeadError& error) {
      impl_->death_cause = error.what();
    }
  };
  unless_dead([&] { impl_->ReceiveOutputs(timeout); });
  // After the outputs, because receiving them resets the signal of the compiler.
  if (!impl_->death_cause) {
    impl_->ReleaseCompiled();
    impl_->stats.num_waiting_reqs += impl_->PublishHeld();
  }
  const ProcessedOutputs& processed = impl_->output_processor.Process(impl_->engine_core_outputs);
  unless_dead([&] { impl_->Respond(processed); });
  if (impl_->death_cause) {
    impl_->held_requests.clear();
    impl_->PublishHeld();
    impl_->output_processor.FailAll(*impl_->death_cause);
    if (processed.request_outputs.empty()) throw EngineDeadError(*impl_->death_cause);
  }
  return processed.request_outputs;
}

bool LLMEngine::HasUnfinishedRequests() const { return impl_->output_processor.num_unfinished() > 0; }

int64_t LLMEngine::NumUnfinishedRequests() const {
  return static_cast<int64_t>(impl_->output_processor.num_unfinished());
}

int LLMEngine::OutputFd() const { return impl_->client->OutputFd(); }
const SchedulerStats& LLMEngine::stats() const { return impl_->stats; }
PromptProgress LLMEngine::prompt_progress() const {
  const SchedulerStats& then = impl_->stats_at_last_request;
  const int64_t num_computed = impl_->stats.num_computed_tokens - then.num_computed_tokens;
  const int64_t num_cached = impl_->stats.prefix_cache.hits - then.prefix_cache.hits;
  return {std::min(num_computed + num_cached, impl_->num_last_prompt_tokens), impl_->num_last_prompt_tokens};
}
const FrontendMetrics& LLMEngine::metrics() const { return impl_->output_processor.metrics(); }
const VllmConfig& LLMEngine::config() const { return impl_->config; }
int64_t LLMEngine::max_model_len() const { return impl_->config.model.max_model_len; }
void LLMEngine::SetMaxModelLen(int64_t max_model_len) {
  impl_->config.model.max_model_len = max_model_len;
  impl_->input_processor.SetMaxModelLen(max_model_len);
}
std::string LLMEngine::TakeWarning() { return impl_->client->TakeWarning(); }
const tokenizer::Tokenizer* LLMEngine::tokenizer() const { return impl_->tokenizer.get(); }
EngineCoreClient& LLMEngine::client() { return *impl_->client; }

}  // namespace vllm
