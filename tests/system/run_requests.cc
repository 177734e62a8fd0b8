#include "tests/system/run_requests.h"

#include <bit>
#include <sstream>
#include <utility>

#include "engine/config/errors.h"
#include "engine/data_parallel/data_parallel_client.h"
#include "tests/support/test_isa.h"

namespace vllm::testing_support {

namespace {

void Describe(const Logprobs& logprobs, std::ostringstream& out) {
  for (const int32_t id : logprobs.token_ids) out << id << ',';
  for (const float x : logprobs.logprobs) out << std::hex << std::bit_cast<uint32_t>(x) << std::dec << ',';
  for (const int32_t rank : logprobs.ranks) out << rank << ',';
}

std::string Describe(const RequestOutput& output) {
  std::ostringstream out;
  out << "prompt logprobs ";
  Describe(output.prompt_logprobs, out);
  for (const CompletionOutput& completion : output.outputs) {
    out << "\n" << completion.index << " text <" << completion.text << "> ids ";
    for (const int32_t id : completion.token_ids) out << id << ',';
    out << " finish " << ToString(completion.finish_reason) << " stop ";
    if (const auto* id = std::get_if<int32_t>(&completion.stop_reason)) out << *id;
    if (const auto* text = std::get_if<std::string>(&completion.stop_reason)) out << '<' << *text << '>';
    out << " logprobs ";
    Describe(completion.logprobs, out);
    out << " sum " << std::hex << std::bit_cast<uint64_t>(completion.cumulative_logprob) << std::dec;
    if (completion.score) out << " score " << std::hex << std::bit_cast<uint64_t>(*completion.score) << std::dec;
  }
  out << "\nerror <" << output.error << ">";
  return out.str();
}

void Collect(LLMEngine& engine, RunResult& result) {
  for (const RequestOutput& output : engine.Step()) {
    if (output.finished) result.outputs[output.request_id] = Describe(output);
  }
}

}  // namespace

RunResult RunRequests(const VllmConfig& given_config, const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer,
                      const std::vector<TestRequest>& requests, const RunHow& how) {
  const VllmConfig config = WithTestIsa(given_config);
  LLMEngine engine(config, tokenizer,
                   how.in_process                           ? MakeInprocClient(config, how.factory)
                   : config.parallel.data_parallel_size > 1 ? MakeDataParallelClient(config, how.factory)
                                                            : MakeThreadClient(config, how.factory));
  engine.SetReasoningFormat(how.reasoning_format);
  RunResult result;
  for (const TestRequest& request : requests) {
    SamplingParams params = request.params;
    params.output_kind = RequestOutputKind::kFinalOnly;
    try {
      engine.AddRequest(request.id, request.prompt, params, request.options);
    } catch (const RequestError& e) {
      result.outputs[request.id] = std::string("rejected: ") + e.what();
      continue;
    }
    for (int64_t i = 0; i < how.num_steps_between && engine.HasUnfinishedRequests(); ++i) Collect(engine, result);
    while (how.one_at_a_time && engine.HasUnfinishedRequests()) Collect(engine, result);
  }
  while (engine.HasUnfinishedRequests()) Collect(engine, result);
  result.stats = engine.stats();
  return result;
}

}  // namespace vllm::testing_support
