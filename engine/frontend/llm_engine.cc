#include "engine/frontend/llm_engine.h"

#include <algorithm>
#include <utility>

#include "engine/config/errors.h"
#include "engine/frontend/input_processor.h"
#include "engine/frontend/output_memory.h"
#include "engine/frontend/output_processor.h"

namespace vllm {

struct LLMEngine::Impl {
  Impl(const VllmConfig& final_config, std::shared_ptr<const Tokenizer> shared_tokenizer,
       std::unique_ptr<EngineCoreClient> engine_core_client)
      : config(final_config),
        tokenizer(std::move(shared_tokenizer)),
        client(std::move(engine_core_client)),
        max_output_memory(config.max_output_memory_bytes.value_or(
            DefaultMaxOutputMemory(client->ready().spare_memory_bytes, client->ready().max_model_len))),
        input_processor(config, client->ready().max_model_len, tokenizer.get(), max_output_memory),
        output_processor(tokenizer.get(), max_output_memory) {
    config.max_output_memory_bytes = max_output_memory;
    config.model.max_model_len = client->ready().max_model_len;
    config.cache.num_blocks = client->ready().num_blocks;
  }

  // Sends what the output processor has for the engine. Throws EngineDeadError.
  void Send() {
    output_processor.TakeToAbort(to_abort);
    if (!to_abort.empty()) client->AbortRequests(to_abort, AbortUrgency::kAfterStep);
    output_processor.TakeToSubmit(to_submit);
    for (EngineCoreRequestPtr& request : to_submit) client->AddRequest(std::move(request));
  }

  VllmConfig config;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<EngineCoreClient> client;
  int64_t max_output_memory;
  InputProcessor input_processor;
  OutputProcessor output_processor;
  RequestId next_request_id = 1;
  EngineCoreOutputs engine_core_outputs;
  std::vector<EngineCoreRequestPtr> to_submit;
  std::vector<RequestId> to_abort;
  SchedulerStats stats;
  SchedulerStats stats_at_last_request;
  int64_t num_last_prompt_tokens = 0;
  std::optional<std::string> death_cause;
};

LLMEngine::LLMEngine(const VllmConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                     std::unique_ptr<EngineCoreClient> client)
    : impl_(std::make_unique<Impl>(config, std::move(tokenizer), std::move(client))) {}

LLMEngine::~LLMEngine() = default;

void LLMEngine::AddRequest(const std::string& request_id, const Prompt& prompt, const SamplingParams& params,
                           const RequestOptions& options) {
  if (impl_->death_cause) throw EngineDeadError(*impl_->death_cause);
  if (impl_->output_processor.Contains(request_id)) {
    throw RequestError("request_id: must not be among the unfinished requests");
  }
  ProcessedInput input = impl_->input_processor.Process(request_id, prompt, params);
  const OutputMemory output_memory = EstimateOutputMemory(
      input.params, static_cast<int64_t>(input.prompt_token_ids.size()), impl_->config.model.vocab_size);
  // Later children find the prompt's blocks in the cache when the first has computed them. Its prompt logprobs speak
  // for all of them, and have to come first.
  const auto num_prompt_tokens = static_cast<int64_t>(input.prompt_token_ids.size());
  impl_->stats_at_last_request = impl_->stats;
  impl_->num_last_prompt_tokens = num_prompt_tokens;
  const bool can_share =
      impl_->config.cache.enable_prefix_caching && num_prompt_tokens > impl_->config.cache.block_size;
  const bool hold_back = input.params.n > 1 && (can_share || input.params.prompt_logprobs.has_value());
  const RequestId first_child_id = impl_->next_request_id;
  impl_->next_request_id += static_cast<RequestId>(input.params.n);
  impl_->output_processor.AddRequest(
      std::make_unique<ParentRequest>(request_id, std::move(input), options, first_child_id, hold_back), output_memory);
  try {
    impl_->Send();
  } catch (const EngineDeadError&) {
    // The caller learns it from this exception, so that no output is due.
    impl_->output_processor.RemoveRequest(request_id);
    throw;
  }
}

void LLMEngine::AbortRequest(const std::string& request_id) {
  if (!impl_->output_processor.Contains(request_id)) return;
  impl_->output_processor.Abort(request_id);
  impl_->output_processor.TakeToAbort(impl_->to_abort);
  impl_->client->AbortRequests(impl_->to_abort, AbortUrgency::kPrompt);
  impl_->client->Interrupt();
}

const std::vector<RequestOutput>& LLMEngine::Step(std::chrono::milliseconds timeout) {
  OutputProcessor& output_processor = impl_->output_processor;
  output_processor.BeginRound();
  if (!impl_->death_cause) {
    const bool wait = output_processor.outputs().empty() && output_processor.num_running() > 0;
    try {
      impl_->client->GetOutputs(impl_->engine_core_outputs, wait ? timeout : std::chrono::milliseconds(0));
      impl_->stats = impl_->engine_core_outputs.stats;
      output_processor.Process(impl_->engine_core_outputs);
      impl_->Send();
    } catch (const EngineDeadError& error) {
      impl_->death_cause = error.what();
      output_processor.FailAll(*impl_->death_cause);
    }
  }
  if (impl_->death_cause && output_processor.outputs().empty()) throw EngineDeadError(*impl_->death_cause);
  return output_processor.outputs();
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
const Tokenizer* LLMEngine::tokenizer() const { return impl_->tokenizer.get(); }
EngineCoreClient& LLMEngine::client() { return *impl_->client; }

}  // namespace vllm
