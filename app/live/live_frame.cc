#include "app/live/live_frame.h"

#include <array>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/request_stats.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// Longer texts in a frame are rejected.
constexpr size_t kMaxTextBytes = 64 * 1024;
constexpr size_t kMaxRanks = 1024;
constexpr int64_t kMaxCount = int64_t{1} << 53;

double Rounded(Seconds time) { return std::round(time.count() * 1e6) / 1e6; }

// JsonFieldWriter and JsonFieldReader have the same functions, so that the templates below list the fields of an object
// once for both directions.
class JsonFieldWriter {
 public:
  const Json& json() const { return json_; }

  void Field(const char* name, int64_t value, int64_t /*min*/ = 0) { json_[name] = value; }
  void Field(const char* name, double value) { json_[name] = value; }
  void Field(const char* name, bool value) { json_[name] = value; }
  void Field(const char* name, const std::string& value) { json_[name] = value; }
  void Field(const char* name, RequestId value) { json_[name] = value; }
  void Field(const char* name, RequestStatus value) { json_[name] = static_cast<int>(value); }
  void Field(const char* name, Seconds value) { json_[name] = Rounded(value); }
  void Field(const char* name, SteadyTime value) { json_[name] = Rounded(value.time_since_epoch()); }
  void Field(const char* name, const SpecDecodingStats& value) { json_[name] = SpeculationJson(value); }
  void Field(const char* name, const std::vector<Seconds>& times, size_t /*max_size*/) {
    Json& array = json_[name] = Json::array();
    for (const Seconds time : times) array.push_back(Rounded(time));
  }
  template <typename Value>
  void Field(const char* name, const std::optional<Value>& value) {
    json_[name] = Json();
    if (value) Field(name, *value);
  }
  // A negative time is null.
  void TimeOrNull(const char* name, Seconds value) {
    Field(name, value < Seconds(0) ? std::nullopt : std::optional(value));
  }
  // A field that JsonFieldReader ignores, because it follows from others.
  void Derived(const char* name, std::string_view value) { json_[name] = value; }
  // A list of objects. `list_fields` lists the fields of each.
  template <typename Value, typename ListFields>
  void Objects(const char* name, const std::vector<Value>& values, size_t /*max_size*/, ListFields list_fields) {
    Json array = Json::array();
    for (const Value& value : values) {
      JsonFieldWriter fields;
      list_fields(fields, value);
      array.push_back(fields.json());
    }
    json_[name] = std::move(array);
  }

 private:
  Json json_;
};

// Once a field is missing or wrong, ok() is false and all further fields are left unchanged.
class JsonFieldReader {
 public:
  explicit JsonFieldReader(const Json& json) : json_(json), ok_(json.is_object()) {}

  bool ok() const { return ok_; }

  // Returns null if the field is missing.
  const Json* Find(const char* name) {
    if (!ok_) return nullptr;
    const auto found = json_.find(name);
    ok_ = found != json_.end();
    return ok_ ? &*found : nullptr;
  }
  // Returns the elements of an array, or null.
  const Json* Array(const char* name, size_t max_size) {
    const Json* field = Find(name);
    if (field == nullptr) return nullptr;
    ok_ = field->is_array() && field->size() <= max_size;
    return ok_ ? field : nullptr;
  }

  void Field(const char* name, int64_t& value, int64_t min = 0) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    Read(*field, value, min);
  }
  void Field(const char* name, double& value) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    ok_ = field->is_number() && std::isfinite(field->get<double>()) && std::abs(field->get<double>()) < 1e15;
    if (ok_) value = field->get<double>();
  }
  void Field(const char* name, bool& value) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    ok_ = field->is_boolean();
    if (ok_) value = field->get<bool>();
  }
  void Field(const char* name, std::string& value) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    ok_ = field->is_string() && field->get_ref<const std::string&>().size() <= kMaxTextBytes;
    if (ok_) value = field->get<std::string>();
  }
  void Field(const char* name, RequestId& value) {
    int64_t id = 0;
    Field(name, id);
    if (ok_) value = static_cast<RequestId>(id);
  }
  void Field(const char* name, RequestStatus& value) {
    int64_t status = 0;
    Field(name, status);
    ok_ = ok_ && status <= static_cast<int64_t>(RequestStatus::kFinishedError);
    if (ok_) value = static_cast<RequestStatus>(status);
  }
  void Field(const char* name, Seconds& value) {
    const Json* field = Find(name);
    if (field != nullptr) Read(*field, value);
  }
  void Field(const char* name, SteadyTime& value) {
    Seconds time{0};
    Field(name, time);
    if (ok_) value = SteadyTime(std::chrono::duration_cast<SteadyTime::duration>(time));
  }
  void Field(const char* name, SpecDecodingStats& value) {
    const Json* methods = Find(name);
    if (methods == nullptr) return;
    ok_ = methods->is_object();
    for (size_t i = 0; ok_ && i < value.methods.size(); ++i) {
      const auto found = methods->find(ToString(static_cast<SpeculativeMethod>(i)));
      if (found == methods->end()) continue;
      SpecDecodingStats::Method& method = value.methods[i];
      JsonFieldReader fields(*found);
      fields.Field("drafts", method.num_drafts);
      fields.Field("draft_tokens", method.num_draft_tokens);
      fields.Field("accepted_tokens", method.num_accepted_tokens);
      fields.Field("drafted_per_position", method.drafted);
      fields.Field("accepted_per_position", method.accepted);
      ok_ = fields.ok();
    }
  }
  void Field(const char* name, std::array<int64_t, SpecDecodingStats::kNumPositions>& counts) {
    const Json* array = Array(name, counts.size());
    for (size_t i = 0; array != nullptr && ok_ && i < array->size(); ++i) Read((*array)[i], counts[i]);
  }
  void Field(const char* name, std::vector<Seconds>& times, size_t max_size) {
    const Json* array = Array(name, max_size);
    if (array == nullptr) return;
    for (const Json& time : *array) Read(time, times.emplace_back());
  }
  template <typename Value>
  void Field(const char* name, std::optional<Value>& value) {
    const Json* field = Find(name);
    if (field == nullptr || field->is_null()) return;
    Value read{};
    Field(name, read);
    if (ok_) value = read;
  }
  void TimeOrNull(const char* name, Seconds& value) {
    std::optional<Seconds> time;
    Field(name, time);
    if (ok_) value = time.value_or(Seconds(-1));
  }
  void Derived(const char* /*name*/, std::string_view /*value*/) {}
  template <typename Value, typename ListFields>
  void Objects(const char* name, std::vector<Value>& values, size_t max_size, ListFields list_fields) {
    const Json* array = Array(name, max_size);
    if (array == nullptr) return;
    for (const Json& object : *array) {
      JsonFieldReader fields(object);
      list_fields(fields, values.emplace_back());
      ok_ = ok_ && fields.ok();
    }
  }

 private:
  void Read(const Json& number, int64_t& value, int64_t min = 0) {
    ok_ = number.is_number_integer() && (!number.is_number_unsigned() || number.get<uint64_t>() <= kMaxCount);
    if (ok_) ok_ = number.get<int64_t>() >= min && number.get<int64_t>() <= kMaxCount;
    if (ok_) value = number.get<int64_t>();
  }
  void Read(const Json& number, Seconds& value) {
    // Nanoseconds must fit into 64 bits.
    ok_ = ok_ && number.is_number() && std::abs(number.get<double>()) < 1e9;
    if (ok_) value = Seconds(number.get<double>());
  }

  const Json& json_;
  bool ok_;
};

// In the functions below, `fields` is a JsonFieldWriter and the object is const, or `fields` is a JsonFieldReader.

template <typename Fields, typename Process>
void ProcessFields(Fields& fields, Process& process) {
  fields.Field("pid", process.pid);
  fields.Field("command", process.command);
  fields.Field("model", process.model);
  fields.Field("dtype", process.dtype);
  fields.Field("tensor_parallel_size", process.tensor_parallel_size);
  fields.Field("data_parallel_size", process.data_parallel_size, 1);
  fields.Field("threads_per_rank", process.threads_per_rank);
  fields.Field("max_model_len", process.max_model_len);
  fields.Field("rss_bytes", process.rss_bytes);
  fields.Field("uptime_s", process.uptime);
}

template <typename Fields, typename Engine>
void EngineFields(Fields& fields, Engine& engine) {
  fields.Field("time_s", engine.time);
  fields.Field("step", engine.scheduler.step);
  fields.Field("num_requests_running", engine.scheduler.num_running_reqs);
  fields.Field("num_requests_waiting", engine.scheduler.num_waiting_reqs);
  fields.Field("kv_cache_usage", engine.scheduler.kv_cache_usage);
  fields.Field("prefix_cache_queries", engine.scheduler.prefix_cache.queries);
  fields.Field("prefix_cache_hits", engine.scheduler.prefix_cache.hits);
  fields.Field("num_preemptions", engine.scheduler.num_preemptions);
  fields.Field("speculation", engine.scheduler.spec_decoding);
  fields.Field("kv_loaded_tokens", engine.scheduler.kv_transfer.num_loaded_tokens);
  fields.Field("kv_saved_tokens", engine.scheduler.kv_transfer.num_saved_tokens);
  fields.Field("prompt_tokens", engine.scheduler.num_prompt_tokens);
  fields.Field("generation_tokens", engine.scheduler.num_generation_tokens);
  fields.Field("num_scheduled_tokens", engine.scheduler.num_scheduled_tokens);
  fields.Field("num_computed_tokens", engine.scheduler.num_computed_tokens);
  fields.Field("admission_paused", engine.scheduler.admission_paused);
  fields.Field("max_num_batched_tokens", engine.max_num_batched_tokens);
  fields.Field("max_num_seqs", engine.max_num_seqs);
  fields.Field("num_steps", engine.num_executed_steps);
  fields.Field("step_time_s", engine.step_time);
  fields.Field("last_step_s", engine.last_step_time);
  fields.Field("rank_times_s", engine.rank_times, kMaxRanks);
  fields.Field("snapshot_s", engine.cost);
  fields.Field("num_kv_blocks", engine.num_kv_blocks);
  fields.Field("block_size", engine.block_size);
  fields.Field("blocks_per_cell", engine.blocks_per_cell, 1);
}

template <typename Fields, typename Request, typename Text>
void RequestFields(Fields& fields, Request& request, Text& prompt) {
  fields.Field("id", request.request_id);
  fields.Field("request_id", request.external_req_id);
  fields.Derived("state", LiveStateName(request));
  fields.Field("status", request.status);
  fields.Field("prompt_tokens", request.num_prompt_tokens);
  fields.Field("cached_tokens", request.num_cached_tokens);
  fields.Field("computed_tokens", request.num_computed_tokens);
  fields.Field("output_tokens", request.num_output_tokens);
  fields.Field("max_tokens", request.max_tokens);
  fields.Field("num_preemptions", request.num_preemptions);
  fields.Field("priority", request.priority, -kMaxCount);
  fields.Field("age_s", request.age);
  fields.TimeOrNull("time_to_first_token_s", request.time_to_first_token);
  fields.Field("decode_s", request.decode_time);
  fields.Field("prompt", prompt);
}

template <typename Fields, typename Batch>
void BatchFields(Fields& fields, Batch& batch) {
  fields.Field("input", batch.input);
  fields.Field("output", batch.output);
  fields.Field("rows_done", batch.num_done);
  fields.Field("rows_failed", batch.num_failed);
  fields.Field("rows_total", batch.num_rows);
  fields.Field("rows_total_is_estimate", batch.num_rows_is_estimate);
  fields.Field("prompt_tokens", batch.num_prompt_tokens);
  fields.Field("generation_tokens", batch.num_generation_tokens);
  fields.Field("elapsed_s", batch.elapsed);
  fields.Field("time_left_s", batch.time_left);
  fields.Objects("errors", batch.errors, LiveBatch::kMaxErrors, [](auto& error_fields, auto& error) {
    error_fields.Field("line", error.line);
    error_fields.Field("message", error.message);
  });
}

template <typename Fields, typename Detail>
void DetailFields(Fields& fields, Detail& detail) {
  fields.Field("id", detail.request_id);
  fields.Field("prompt", detail.prompt);
  fields.Field("output", detail.output);
}

// Returns the object with the fields that `list_fields` lists.
template <typename ListFields>
Json ObjectJson(ListFields list_fields) {
  JsonFieldWriter fields;
  list_fields(fields);
  return fields.json();
}

// Returns true if `json` is an object with all fields that `list_fields` lists.
template <typename ListFields>
bool ReadObject(const Json& json, ListFields list_fields) {
  JsonFieldReader fields(json);
  list_fields(fields);
  return fields.ok();
}

Json BlocksJson(const EngineSnapshot& engine) {
  Json runs = Json::array();
  for (size_t begin = 0; begin < engine.kv_blocks.size();) {
    size_t end = begin + 1;
    while (end < engine.kv_blocks.size() && engine.kv_blocks[end] == engine.kv_blocks[begin]) ++end;
    runs.push_back(engine.kv_blocks[begin]);
    runs.push_back(end - begin);
    begin = end;
  }
  return runs;
}

bool ReadBlocks(const Json& runs, EngineSnapshot& engine) {
  if (runs.size() % 2 != 0) return false;
  for (size_t i = 0; i < runs.size(); i += 2) {
    if (!runs[i].is_number_unsigned() || !runs[i + 1].is_number_unsigned()) return false;
    const auto state = runs[i].get<uint64_t>();
    const auto count = runs[i + 1].get<uint64_t>();
    if (state >= EngineSnapshot::kFirstRequest + engine.requests.size()) return false;
    if (count > EngineSnapshot::kMaxCells - engine.kv_blocks.size()) return false;
    engine.kv_blocks.insert(engine.kv_blocks.end(), count, static_cast<uint16_t>(state));
  }
  return true;
}

}  // namespace

std::string_view LiveStateName(const RequestSnapshot& request) {
  if (request.status == RequestStatus::kPreempted) return "preempted";
  if (request.status == RequestStatus::kWaiting) return "waiting";
  if (request.status == RequestStatus::kWaitingForRemoteKVs) return "waiting";
  return request.num_output_tokens == 0 || request.num_computed_tokens < request.num_prompt_tokens ? "reading"
                                                                                                   : "writing";
}

Json LiveFrameJson(const LiveFrame& frame) {
  Json json;
  const EngineSnapshot& engine = frame.engine;
  json["process"] = ObjectJson([&](auto& fields) { ProcessFields(fields, frame.process); });
  json["engine"] = ObjectJson([&](auto& fields) { EngineFields(fields, engine); });
  json["requests"] = Json::array();
  for (size_t i = 0; i < engine.requests.size(); ++i) {
    const std::string prompt = i < frame.prompts.size() ? frame.prompts[i] : "";
    json["requests"].push_back(ObjectJson([&](auto& fields) { RequestFields(fields, engine.requests[i], prompt); }));
  }
  json["kv_blocks"] = BlocksJson(engine);
  json["batch"] = frame.batch ? ObjectJson([&](auto& fields) { BatchFields(fields, *frame.batch); }) : Json();
  json["detail"] = frame.detail ? ObjectJson([&](auto& fields) { DetailFields(fields, *frame.detail); }) : Json();
  return json;
}

bool ReadLiveFrame(const Json& json, LiveFrame& frame) {
  frame = LiveFrame();
  JsonFieldReader fields(json);
  const Json* process = fields.Find("process");
  const Json* engine = fields.Find("engine");
  const Json* requests = fields.Array("requests", EngineSnapshot::kMaxRequests);
  const Json* blocks = fields.Array("kv_blocks", 2 * EngineSnapshot::kMaxCells);
  const Json* batch = fields.Find("batch");
  const Json* detail = fields.Find("detail");
  if (!fields.ok()) return false;
  if (!ReadObject(*process, [&](auto& f) { ProcessFields(f, frame.process); })) return false;
  if (!ReadObject(*engine, [&](auto& f) { EngineFields(f, frame.engine); })) return false;
  for (const Json& request : *requests) {
    RequestSnapshot& read = frame.engine.requests.emplace_back();
    std::string& prompt = frame.prompts.emplace_back();
    if (!ReadObject(request, [&](auto& f) { RequestFields(f, read, prompt); })) return false;
  }
  if (!ReadBlocks(*blocks, frame.engine)) return false;
  if (!batch->is_null()) {
    LiveBatch& read = frame.batch.emplace();
    if (!ReadObject(*batch, [&](auto& f) { BatchFields(f, read); })) return false;
  }
  if (!detail->is_null()) {
    LiveDetail& read = frame.detail.emplace();
    if (!ReadObject(*detail, [&](auto& f) { DetailFields(f, read); })) return false;
  }
  return true;
}

}  // namespace vllm::app
