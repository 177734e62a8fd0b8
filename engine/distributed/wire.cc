#include "engine/distributed/wire.h"

#include <algorithm>
#include <chrono>
#include <type_traits>

#include "engine/distributed/wire_archive.h"

namespace vllm {
namespace {

// Passes the fields of a value to a WireWriter, if the value is const, or to a WireReader.

template <typename Archive, typename Value>
void HostFields(Archive& archive, Value& host) {
  archive.Field(host.name);
  archive.Field(host.cpus);
  archive.Field(host.num_machine_cpus);
}

template <typename Archive, typename Value>
void HelloFields(Archive& archive, Value& hello) {
  archive.Field(hello.identity);
  archive.Field(hello.num_blocks);
  archive.Field(hello.max_model_len);
  archive.Field(hello.spare_memory_bytes);
  archive.Field(hello.load_seconds);
  archive.Field(hello.warnings);
}

template <typename Archive, typename Value>
void FailedFields(Archive& archive, Value& failed) {
  archive.Field(failed.kind, FailureKind::kResource);
  archive.Field(failed.text);
  archive.Field(failed.hint);
}

template <typename Archive, typename Value>
void PlaceFields(Archive& archive, Value& place) {
  archive.Field(place.num_local_processes);
  archive.Field(place.num_sharing);
  archive.Field(place.share_index);
}

template <typename Archive, typename Value>
void StatsFields(Archive& archive, Value& stats) {
  archive.Field(stats.step);
  archive.Field(stats.num_running_reqs);
  archive.Field(stats.num_waiting_reqs);
  archive.Field(stats.kv_cache_usage);
  archive.Field(stats.prefix_cache.requests);
  archive.Field(stats.prefix_cache.queries);
  archive.Field(stats.prefix_cache.hits);
  archive.Field(stats.num_preemptions);
  archive.Field(stats.num_scheduled_tokens);
  archive.Field(stats.num_computed_tokens);
  archive.Field(stats.num_prompt_tokens);
  archive.Field(stats.num_generation_tokens);
  archive.Field(stats.num_interactive_tokens);
  archive.Field(stats.admission_paused);
  for (auto& method : stats.spec_decoding.methods) {
    archive.Field(method.num_drafts);
    archive.Field(method.num_draft_tokens);
    archive.Field(method.num_accepted_tokens);
    for (auto& count : method.drafted) archive.Field(count);
    for (auto& count : method.accepted) archive.Field(count);
  }
  archive.Field(stats.kv_transfer.num_loaded_tokens);
  archive.Field(stats.kv_transfer.num_saved_tokens);
}

template <typename Archive, typename Value>
void LogprobsFields(Archive& archive, Value& logprobs) {
  auto width = static_cast<uint64_t>(logprobs.width);
  archive.Field(width);
  archive.Field(logprobs.token_ids);
  archive.Field(logprobs.logprobs);
  archive.Field(logprobs.ranks);
  if constexpr (!std::is_const_v<Value>) {
    const size_t num_positions = logprobs.num_positions();
    const size_t num_entries = logprobs.token_ids.size();
    const bool fits = num_positions == 0 ? num_entries == 0
                                         : num_entries % num_positions == 0 && num_entries / num_positions == width;
    if (!fits || logprobs.logprobs.size() != num_entries) throw WireError("logprobs without their positions");
    logprobs.width = static_cast<size_t>(width);
  }
}

template <typename Archive, typename Time>
void TimeField(Archive& archive, Time& time, SteadyTime now) {
  int64_t age = -1;
  if constexpr (std::is_const_v<Time>) {
    using std::chrono::nanoseconds;
    if (time != SteadyTime()) age = std::max<int64_t>(0, std::chrono::duration_cast<nanoseconds>(now - time).count());
    archive.Field(age);
  } else {
    archive.Field(age);
    if (age < -1) throw WireError("a time in the future");
    // Older than any machine: the clock's start would underflow.
    constexpr int64_t kMaxAge = int64_t{1} << 58;
    if (age > kMaxAge) throw WireError("a time too long ago");
    time = age < 0 ? SteadyTime() : now - std::chrono::nanoseconds(age);
  }
}

template <typename Archive, typename Value>
void OutputFields(Archive& archive, Value& output, SteadyTime now) {
  archive.Field(output.request_id);
  archive.Field(output.new_token_ids);
  LogprobsFields(archive, output.new_logprobs);
  LogprobsFields(archive, output.prompt_logprobs);
  archive.Field(output.finish_reason, FinishReason::kError);
  archive.Field(output.stop_token_id);
  archive.Field(output.beam_score);
  archive.Field(output.cumulative_logprob);
  archive.Field(output.error);
  archive.Field(output.num_cached_tokens);
  archive.Field(output.num_preemptions);
  archive.Field(output.num_draft_tokens);
  archive.Field(output.num_accepted_draft_tokens);
  TimeField(archive, output.scheduled_time, now);
  TimeField(archive, output.first_token_time, now);
  TimeField(archive, output.last_token_time, now);
}

template <typename Archive, typename Value>
void ParamsFields(Archive& archive, Value& params) {
  archive.Field(params.n);
  archive.Field(params.presence_penalty);
  archive.Field(params.frequency_penalty);
  archive.Field(params.repetition_penalty);
  archive.Field(params.temperature);
  archive.Field(params.top_p);
  archive.Field(params.top_k);
  archive.Field(params.min_p);
  archive.Field(params.seed);
  archive.Field(params.stop);
  archive.Field(params.stop_token_ids);
  archive.Field(params.ignore_eos);
  archive.Field(params.max_tokens);
  archive.Field(params.min_tokens);
  archive.Field(params.logprobs);
  archive.Field(params.prompt_logprobs);
  archive.Field(params.detokenize);
  archive.Field(params.skip_special_tokens);
  archive.Field(params.include_stop_str_in_output);
  archive.Field(params.output_kind, RequestOutputKind::kFinalOnly);
  archive.Field(params.logit_bias);
  archive.Field(params.allowed_token_ids);
  archive.Field(params.bad_words);
  archive.Field(params.skip_reading_prefix_cache);
  archive.Field(params.thinking_token_budget);
  archive.Field(params.use_beam_search);
  archive.Field(params.beam_width);
  archive.Field(params.length_penalty);
  if constexpr (!std::is_const_v<Value>) {
    if (params.use_beam_search &&
        (!params.beam_width || *params.beam_width < 1 || *params.beam_width > Limits::kMaxBeamWidth)) {
      throw WireError("beam search without a valid width");
    }
  }
  bool has_structure = params.structured_outputs.has_value();
  archive.Field(has_structure);
  if (has_structure) {
    if constexpr (!std::is_const_v<Value>) params.structured_outputs.emplace();
    auto& structure = *params.structured_outputs;
    archive.Field(structure.kind, StructuredOutputsParams::Kind::kToolCalls);
    archive.Field(structure.text);
    archive.Field(structure.choice);
    archive.Field(structure.any_order);
    archive.Field(structure.flexible_whitespace);
    archive.Field(structure.before);
  }
  archive.Field(params.bad_words_token_ids);
  archive.Field(params.eos_token_id);
}

template <typename Archive, typename Value>
void RequestFields(Archive& archive, Value& request, SteadyTime now) {
  archive.Field(request.request_id);
  archive.Field(request.prompt_token_ids);
  archive.Field(request.prior_output_token_ids);
  ParamsFields(archive, request.sampling_params);
  TimeField(archive, request.arrival_time, now);
  archive.Field(request.priority);
  archive.Field(request.cache_salt);
  archive.Field(request.lora_slot);
  archive.Field(request.lora_digest);
  archive.Field(request.interactive);
  archive.Field(request.external_req_id);
}

// Returns a writer that has written the type.
WireWriter Writer(MessageType type) {
  WireWriter writer;
  writer.Field(static_cast<uint8_t>(type));
  return writer;
}

// Returns a reader that has read the type.
WireReader Reader(std::string_view message) {
  WireReader reader(message);
  uint8_t type = 0;
  reader.Field(type);
  return reader;
}

}  // namespace

std::string EncodeHost(const HostMessage& host) {
  WireWriter writer = Writer(MessageType::kHost);
  writer.Field(kWireVersion);
  HostFields(writer, host);
  return writer.Take();
}

std::string EncodeHello(const HelloMessage& hello) {
  WireWriter writer = Writer(MessageType::kHello);
  HelloFields(writer, hello);
  return writer.Take();
}

std::string EncodeFailed(const FailedMessage& failed) {
  WireWriter writer = Writer(MessageType::kFailed);
  FailedFields(writer, failed);
  return writer.Take();
}

std::string EncodeOutputs(const EngineCoreOutputs& outputs, SteadyTime now) {
  WireWriter writer = Writer(MessageType::kOutputs);
  StatsFields(writer, outputs.stats);
  writer.Field(static_cast<uint32_t>(outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) OutputFields(writer, outputs[i], now);
  return writer.Take();
}

std::string EncodeDied(const std::string& cause) {
  WireWriter writer = Writer(MessageType::kDied);
  writer.Field(cause);
  return writer.Take();
}

std::string EncodePlace(const PlaceMessage& place) {
  WireWriter writer = Writer(MessageType::kPlace);
  PlaceFields(writer, place);
  return writer.Take();
}

std::string EncodeAdd(const EngineCoreRequest& request) {
  WireWriter writer = Writer(MessageType::kAdd);
  RequestFields(writer, request, std::chrono::steady_clock::now());
  writer.Field(request.reasoning_format != nullptr);
  return writer.Take();
}

std::string EncodeAbort(std::span<const RequestId> request_ids, AbortUrgency urgency) {
  WireWriter writer = Writer(MessageType::kAbort);
  writer.Field(urgency, AbortUrgency::kPrompt);
  writer.Field(std::vector<RequestId>(request_ids.begin(), request_ids.end()));
  return writer.Take();
}

std::string EncodeAbortWithOutput(RequestId request_id) {
  WireWriter writer = Writer(MessageType::kAbortWithOutput);
  writer.Field(request_id);
  return writer.Take();
}

std::string EncodeShutdown(const ShutdownMessage& shutdown) {
  WireWriter writer = Writer(MessageType::kShutdown);
  writer.Field(shutdown.mode, ShutdownMode::kDrain);
  writer.Field(shutdown.is_broken);
  return writer.Take();
}

std::string EncodeFlag(MessageType type, bool value) {
  WireWriter writer = Writer(type);
  writer.Field(value);
  return writer.Take();
}

std::string EncodeEmpty(MessageType type) { return Writer(type).Take(); }

MessageType TypeOf(std::string_view message) {
  if (message.empty()) throw WireError("it is empty");
  const auto type = static_cast<uint8_t>(message.front());
  const auto is_within = [type](MessageType first, MessageType last) {
    return type >= static_cast<uint8_t>(first) && type <= static_cast<uint8_t>(last);
  };
  if (!is_within(MessageType::kHost, MessageType::kResetDone) &&
      !is_within(MessageType::kPlace, MessageType::kShutdown)) {
    throw WireError("unknown type (" + std::to_string(type) + ")");
  }
  return static_cast<MessageType>(type);
}

HostMessage DecodeHost(std::string_view message) {
  WireReader reader = Reader(message);
  uint32_t version = 0;
  reader.Field(version);
  if (version != kWireVersion) {
    throw WireError("it is from another version of vllmcli (format " + std::to_string(version) + ", not " +
                    std::to_string(kWireVersion) + ")");
  }
  HostMessage host;
  HostFields(reader, host);
  reader.ExpectEnd();
  return host;
}

HelloMessage DecodeHello(std::string_view message) {
  WireReader reader = Reader(message);
  HelloMessage hello;
  HelloFields(reader, hello);
  reader.ExpectEnd();
  return hello;
}

FailedMessage DecodeFailed(std::string_view message) {
  WireReader reader = Reader(message);
  FailedMessage failed;
  FailedFields(reader, failed);
  reader.ExpectEnd();
  return failed;
}

void DecodeOutputs(std::string_view message, SteadyTime now, EngineCoreOutputs& outputs) {
  WireReader reader = Reader(message);
  outputs.Clear();
  StatsFields(reader, outputs.stats);
  uint32_t count = 0;
  reader.Field(count);
  for (uint32_t i = 0; i < count; ++i) OutputFields(reader, outputs.Add(0), now);
  reader.ExpectEnd();
}

std::string DecodeDied(std::string_view message) {
  WireReader reader = Reader(message);
  std::string cause;
  reader.Field(cause);
  reader.ExpectEnd();
  return cause;
}

PlaceMessage DecodePlace(std::string_view message) {
  WireReader reader = Reader(message);
  PlaceMessage place;
  PlaceFields(reader, place);
  reader.ExpectEnd();
  return place;
}

AddMessage DecodeAdd(std::string_view message, SteadyTime now) {
  WireReader reader = Reader(message);
  AddMessage add;
  add.request = std::make_shared<EngineCoreRequest>();
  RequestFields(reader, *add.request, now);
  reader.Field(add.has_reasoning_format);
  reader.ExpectEnd();
  return add;
}

AbortMessage DecodeAbort(std::string_view message) {
  WireReader reader = Reader(message);
  AbortMessage abort;
  reader.Field(abort.urgency, AbortUrgency::kPrompt);
  reader.Field(abort.request_ids);
  reader.ExpectEnd();
  return abort;
}

RequestId DecodeAbortWithOutput(std::string_view message) {
  WireReader reader = Reader(message);
  RequestId request_id = 0;
  reader.Field(request_id);
  reader.ExpectEnd();
  return request_id;
}

ShutdownMessage DecodeShutdown(std::string_view message) {
  WireReader reader = Reader(message);
  ShutdownMessage shutdown;
  reader.Field(shutdown.mode, ShutdownMode::kDrain);
  reader.Field(shutdown.is_broken);
  reader.ExpectEnd();
  return shutdown;
}

bool DecodeFlag(std::string_view message) {
  WireReader reader = Reader(message);
  bool value = false;
  reader.Field(value);
  reader.ExpectEnd();
  return value;
}

}  // namespace vllm
