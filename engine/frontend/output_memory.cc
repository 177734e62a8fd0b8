#include "engine/frontend/output_memory.h"

#include <algorithm>
#include <limits>

#include "engine/config/errors.h"

namespace vllm {

namespace {

// Outputs may take 1/8 of the remaining memory. They compete with the page cache, which holds the mapped weights.
constexpr int64_t kShareOfSpare = 8;

// Bytes of a token without logprobs. Its id (4 bytes) is in the scheduler's request, each rank's copy, the output
// queue, the front end's state and the output; three of these buffers grow by doubling. Its text, about 4 bytes on
// average and rarely more than 16, is in the detokenizer, in the output and, as JSON, in the record.
constexpr int64_t kTokenBytes = 128;
// Bytes of an entry (token id and logprob, 8 bytes) in the step's results, the output queue, the front end's state and
// the output. The buffers of the queue and of the front end grow by doubling, and the old buffer exists until it has
// been copied to the new one. The vocabulary rank of a position's token counts as an entry.
constexpr int64_t kHeldBytesPerEntry = 48;
// Bytes of an entry in the record: the JSON object with its three or four fields, the serialized text, and one copy of
// that text as SafeText. Measured with 64 sequences of 480 tokens and 20 logprobs: 640 bytes with --json, 680 as OpenAI
// output.
constexpr int64_t kRecordBytesPerEntry = 768;

int64_t Add(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

int64_t Multiply(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

// Returns the number of entries of one position: the prompt or sampled token, its vocabulary rank, and the most
// probable tokens. 0 without logprobs.
int64_t Entries(std::optional<int64_t> logprobs, int64_t vocab_size) {
  if (!logprobs) return 0;
  return 2 + (*logprobs < 0 ? vocab_size : std::min(*logprobs, vocab_size));
}

}  // namespace

int64_t OutputMemory::total_bytes() const { return Add(sequence_bytes, Add(held_bytes, record_bytes)); }

OutputMemory EstimateOutputMemory(const SamplingParams& params, int64_t num_prompt_tokens, int64_t vocab_size) {
  const int64_t max_tokens = params.max_tokens.value_or(0);
  const int64_t num_entries = Add(Multiply(Multiply(params.n, max_tokens), Entries(params.logprobs, vocab_size)),
                                  Multiply(num_prompt_tokens, Entries(params.prompt_logprobs, vocab_size)));
  OutputMemory memory;
  // Each sequence has a copy of the prompt.
  memory.sequence_bytes = PlainOutputBytes(Add(num_prompt_tokens, max_tokens));
  memory.held_bytes = Add(Multiply(params.n - 1, memory.sequence_bytes), Multiply(num_entries, kHeldBytesPerEntry));
  // Deltas are written as they arrive, so there is no record of the whole output.
  if (params.output_kind != RequestOutputKind::kDelta)
    memory.record_bytes = Multiply(num_entries, kRecordBytesPerEntry);
  return memory;
}

int64_t PlainOutputBytes(int64_t num_tokens) { return Multiply(num_tokens, kTokenBytes); }

int64_t DefaultMaxOutputMemory(int64_t spare_bytes, int64_t max_model_len) {
  return std::max(spare_bytes / kShareOfSpare, PlainOutputBytes(max_model_len));
}

void CheckOutputMemory(const SamplingParams& params, int64_t num_prompt_tokens, int64_t vocab_size,
                       int64_t limit_bytes) {
  const int64_t bytes = EstimateOutputMemory(params, num_prompt_tokens, vocab_size).total_bytes();
  if (bytes <= limit_bytes) return;
  std::string what = "n " + std::to_string(params.n) + " x max_tokens " + std::to_string(params.max_tokens.value_or(0));
  const auto entries = [&](std::optional<int64_t> logprobs) {
    return std::to_string((*logprobs < 0 ? vocab_size : *logprobs) + 1);
  };
  if (params.logprobs) what += " x " + entries(params.logprobs) + " logprobs";
  if (params.prompt_logprobs) {
    what += ", prompt of " + std::to_string(num_prompt_tokens) + " tokens x " + entries(params.prompt_logprobs) +
            " prompt_logprobs";
  }
  throw RequestError("max_tokens: the output may take up to " + std::to_string(bytes) + " bytes (" + what +
                     "), limit " + std::to_string(limit_bytes) +
                     "; lower n, max_tokens, logprobs or prompt_logprobs, or raise --max-output-memory");
}

}  // namespace vllm
