#include "app/live/live_frame.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include <nlohmann/json.hpp>

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// Longer texts in a frame are rejected.
constexpr size_t kMaxTextBytes = 64 * 1024;
constexpr size_t kMaxRanks = 1024;
constexpr int64_t kMaxCount = int64_t{1} << 53;

double Rounded(Seconds time) { return std::round(time.count() * 1e6) / 1e6; }

Json RequestJson(const RequestSnapshot& request, const std::string& prompt) {
  Json json;
  json["id"] = request.request_id;
  json["request_id"] = request.external_req_id;
  json["state"] = LiveStateName(request);
  json["status"] = static_cast<int>(request.status);
  json["prompt_tokens"] = request.num_prompt_tokens;
  json["cached_tokens"] = request.num_cached_tokens;
  json["computed_tokens"] = request.num_computed_tokens;
  json["output_tokens"] = request.num_output_tokens;
  json["max_tokens"] = request.max_tokens;
  json["num_preemptions"] = request.num_preemptions;
  json["priority"] = request.priority;
  json["age_s"] = Rounded(request.age);
  json["time_to_first_token_s"] =
      request.time_to_first_token < Seconds(0) ? Json() : Json(Rounded(request.time_to_first_token));
  json["decode_s"] = Rounded(request.decode_time);
  json["prompt"] = prompt;
  return json;
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

Json BatchJson(const LiveBatch& batch) {
  Json json;
  json["input"] = batch.input;
  json["output"] = batch.output;
  json["rows_done"] = batch.num_done;
  json["rows_failed"] = batch.num_failed;
  json["rows_total"] = batch.num_rows ? Json(*batch.num_rows) : Json();
  json["rows_total_is_estimate"] = batch.num_rows_is_estimate;
  json["prompt_tokens"] = batch.num_prompt_tokens;
  json["generation_tokens"] = batch.num_generation_tokens;
  json["elapsed_s"] = Rounded(batch.elapsed);
  json["time_left_s"] = batch.time_left ? Json(Rounded(*batch.time_left)) : Json();
  json["errors"] = Json::array();
  for (const LiveError& error : batch.errors) {
    json["errors"].push_back({{"line", error.line}, {"message", error.message}});
  }
  return json;
}

// Reads fields of an object. Once a field is missing or wrong, ok() is false and all further fields are left unchanged.
class JsonFields {
 public:
  explicit JsonFields(const Json& json) : json_(json), ok_(json.is_object()) {}

  bool ok() const { return ok_; }
  void Fail() { ok_ = false; }

  // Returns null if the field is missing.
  const Json* Find(const char* name) {
    if (!ok_) return nullptr;
    const auto found = json_.find(name);
    ok_ = found != json_.end();
    return ok_ ? &*found : nullptr;
  }
  void Read(const char* name, int64_t& value, int64_t min = 0) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    ok_ = field->is_number_integer() && (!field->is_number_unsigned() || field->get<uint64_t>() <= kMaxCount);
    if (ok_) ok_ = field->get<int64_t>() >= min && field->get<int64_t>() <= kMaxCount;
    if (ok_) value = field->get<int64_t>();
  }
  void Read(const char* name, double& value) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    ok_ = field->is_number() && std::isfinite(field->get<double>()) && std::abs(field->get<double>()) < 1e15;
    if (ok_) value = field->get<double>();
  }
  void Read(const char* name, Seconds& value) {
    double seconds = 0.0;
    Read(name, seconds);
    ok_ = ok_ && std::abs(seconds) < 1e9;  // nanoseconds must fit into 64 bits
    if (ok_) value = Seconds(seconds);
  }
  void Read(const char* name, bool& value) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    ok_ = field->is_boolean();
    if (ok_) value = field->get<bool>();
  }
  void Read(const char* name, std::string& value) {
    const Json* field = Find(name);
    if (field == nullptr) return;
    ok_ = field->is_string() && field->get_ref<const std::string&>().size() <= kMaxTextBytes;
    if (ok_) value = field->get<std::string>();
  }
  template <typename Value>
  void ReadOptional(const char* name, std::optional<Value>& value) {
    const Json* field = Find(name);
    if (field == nullptr || field->is_null()) return;
    Value read{};
    Read(name, read);
    if (ok_) value = read;
  }
  // Returns the elements of an array, or null.
  const Json* Array(const char* name, size_t max_size) {
    const Json* field = Find(name);
    if (field == nullptr) return nullptr;
    ok_ = field->is_array() && field->size() <= max_size;
    return ok_ ? field : nullptr;
  }

 private:
  const Json& json_;
  bool ok_;
};

bool ReadRequest(const Json& json, RequestSnapshot& request, std::string& prompt) {
  JsonFields fields(json);
  int64_t id = 0;
  int64_t status = 0;
  std::optional<Seconds> time_to_first_token;
  fields.Read("id", id);
  fields.Read("request_id", request.external_req_id);
  fields.Read("status", status);
  fields.Read("prompt_tokens", request.num_prompt_tokens);
  fields.Read("cached_tokens", request.num_cached_tokens);
  fields.Read("computed_tokens", request.num_computed_tokens);
  fields.Read("output_tokens", request.num_output_tokens);
  fields.Read("max_tokens", request.max_tokens);
  fields.Read("num_preemptions", request.num_preemptions);
  fields.Read("priority", request.priority, -kMaxCount);
  fields.Read("age_s", request.age);
  fields.ReadOptional("time_to_first_token_s", time_to_first_token);
  fields.Read("decode_s", request.decode_time);
  fields.Read("prompt", prompt);
  if (!fields.ok() || status > static_cast<int64_t>(RequestStatus::kFinishedError)) return false;
  request.request_id = static_cast<RequestId>(id);
  request.status = static_cast<RequestStatus>(status);
  request.time_to_first_token = time_to_first_token.value_or(Seconds(-1));
  return true;
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

bool ReadProcess(const Json& json, LiveProcess& process) {
  JsonFields fields(json);
  fields.Read("pid", process.pid);
  fields.Read("command", process.command);
  fields.Read("model", process.model);
  fields.Read("dtype", process.dtype);
  fields.Read("tensor_parallel_size", process.tensor_parallel_size);
  fields.Read("threads_per_rank", process.threads_per_rank);
  fields.Read("max_model_len", process.max_model_len);
  fields.Read("rss_bytes", process.rss_bytes);
  fields.Read("uptime_s", process.uptime);
  return fields.ok();
}

bool ReadEngine(const Json& json, LiveFrame& frame) {
  EngineSnapshot& engine = frame.engine;
  JsonFields fields(json);
  Seconds time{0};
  fields.Read("time_s", time);
  fields.Read("step", engine.scheduler.step);
  fields.Read("num_requests_running", engine.scheduler.num_running_reqs);
  fields.Read("num_requests_waiting", engine.scheduler.num_waiting_reqs);
  fields.Read("kv_cache_usage", engine.scheduler.kv_cache_usage);
  fields.Read("prefix_cache_queries", engine.scheduler.prefix_cache.queries);
  fields.Read("prefix_cache_hits", engine.scheduler.prefix_cache.hits);
  fields.Read("num_preemptions", engine.scheduler.num_preemptions);
  fields.Read("prompt_tokens", engine.scheduler.num_prompt_tokens);
  fields.Read("generation_tokens", engine.scheduler.num_generation_tokens);
  fields.Read("num_scheduled_tokens", engine.scheduler.num_scheduled_tokens);
  fields.Read("num_computed_tokens", engine.scheduler.num_computed_tokens);
  fields.Read("admission_paused", engine.scheduler.admission_paused);
  fields.Read("max_num_batched_tokens", engine.max_num_batched_tokens);
  fields.Read("max_num_seqs", engine.max_num_seqs);
  fields.Read("num_steps", engine.num_executed_steps);
  fields.Read("step_time_s", engine.step_time);
  fields.Read("last_step_s", engine.last_step_time);
  fields.Read("snapshot_s", engine.cost);
  fields.Read("num_kv_blocks", engine.num_kv_blocks);
  fields.Read("block_size", engine.block_size);
  fields.Read("blocks_per_cell", engine.blocks_per_cell, 1);
  if (const Json* ranks = fields.Array("rank_times_s", kMaxRanks)) {
    for (const Json& rank : *ranks) {
      if (!rank.is_number()) return false;
      engine.rank_times.emplace_back(rank.get<double>());
    }
  }
  if (!fields.ok()) return false;
  engine.time = SteadyTime(std::chrono::duration_cast<SteadyTime::duration>(time));
  return true;
}

bool ReadBatch(const Json& json, LiveBatch& batch) {
  JsonFields fields(json);
  fields.Read("input", batch.input);
  fields.Read("output", batch.output);
  fields.Read("rows_done", batch.num_done);
  fields.Read("rows_failed", batch.num_failed);
  fields.ReadOptional("rows_total", batch.num_rows);
  fields.Read("rows_total_is_estimate", batch.num_rows_is_estimate);
  fields.Read("prompt_tokens", batch.num_prompt_tokens);
  fields.Read("generation_tokens", batch.num_generation_tokens);
  fields.Read("elapsed_s", batch.elapsed);
  fields.ReadOptional("time_left_s", batch.time_left);
  if (const Json* errors = fields.Array("errors", LiveBatch::kMaxErrors)) {
    for (const Json& error : *errors) {
      JsonFields reader(error);
      LiveError& read = batch.errors.emplace_back();
      reader.Read("line", read.line);
      reader.Read("message", read.message);
      if (!reader.ok()) return false;
    }
  }
  return fields.ok();
}

}  // namespace

std::string_view LiveStateName(const RequestSnapshot& request) {
  if (request.status == RequestStatus::kPreempted) return "preempted";
  if (request.status == RequestStatus::kWaiting) return "waiting";
  return request.num_output_tokens == 0 || request.num_computed_tokens < request.num_prompt_tokens ? "reading"
                                                                                                   : "writing";
}

Json LiveFrameJson(const LiveFrame& frame) {
  Json json;
  const LiveProcess& process = frame.process;
  json["process"] = {{"pid", process.pid},
                     {"command", process.command},
                     {"model", process.model},
                     {"dtype", process.dtype},
                     {"tensor_parallel_size", process.tensor_parallel_size},
                     {"threads_per_rank", process.threads_per_rank},
                     {"max_model_len", process.max_model_len},
                     {"rss_bytes", process.rss_bytes},
                     {"uptime_s", Rounded(process.uptime)}};
  const EngineSnapshot& engine = frame.engine;
  Json rank_times = Json::array();
  for (const Seconds time : engine.rank_times) rank_times.push_back(Rounded(time));
  json["engine"] = {{"time_s", Rounded(engine.time.time_since_epoch())},
                    {"step", engine.scheduler.step},
                    {"num_requests_running", engine.scheduler.num_running_reqs},
                    {"num_requests_waiting", engine.scheduler.num_waiting_reqs},
                    {"kv_cache_usage", engine.scheduler.kv_cache_usage},
                    {"prefix_cache_queries", engine.scheduler.prefix_cache.queries},
                    {"prefix_cache_hits", engine.scheduler.prefix_cache.hits},
                    {"num_preemptions", engine.scheduler.num_preemptions},
                    {"prompt_tokens", engine.scheduler.num_prompt_tokens},
                    {"generation_tokens", engine.scheduler.num_generation_tokens},
                    {"num_scheduled_tokens", engine.scheduler.num_scheduled_tokens},
                    {"num_computed_tokens", engine.scheduler.num_computed_tokens},
                    {"admission_paused", engine.scheduler.admission_paused},
                    {"max_num_batched_tokens", engine.max_num_batched_tokens},
                    {"max_num_seqs", engine.max_num_seqs},
                    {"num_steps", engine.num_executed_steps},
                    {"step_time_s", Rounded(engine.step_time)},
                    {"last_step_s", Rounded(engine.last_step_time)},
                    {"rank_times_s", std::move(rank_times)},
                    {"snapshot_s", Rounded(engine.cost)},
                    {"num_kv_blocks", engine.num_kv_blocks},
                    {"block_size", engine.block_size},
                    {"blocks_per_cell", engine.blocks_per_cell}};
  json["requests"] = Json::array();
  for (size_t i = 0; i < engine.requests.size(); ++i) {
    json["requests"].push_back(
        RequestJson(engine.requests[i], i < frame.prompts.size() ? frame.prompts[i] : std::string()));
  }
  json["kv_blocks"] = BlocksJson(engine);
  json["batch"] = frame.batch ? BatchJson(*frame.batch) : Json();
  json["detail"] = Json();
  if (frame.detail) {
    json["detail"] = {
        {"id", frame.detail->request_id}, {"prompt", frame.detail->prompt}, {"output", frame.detail->output}};
  }
  return json;
}

bool ReadLiveFrame(const Json& json, LiveFrame& frame) {
  frame = LiveFrame();
  JsonFields fields(json);
  const Json* process = fields.Find("process");
  const Json* engine = fields.Find("engine");
  const Json* requests = fields.Array("requests", EngineSnapshot::kMaxRequests);
  const Json* blocks = fields.Array("kv_blocks", 2 * EngineSnapshot::kMaxCells);
  const Json* batch = fields.Find("batch");
  const Json* detail = fields.Find("detail");
  if (!fields.ok() || !ReadProcess(*process, frame.process) || !ReadEngine(*engine, frame)) return false;
  for (const Json& request : *requests) {
    if (!ReadRequest(request, frame.engine.requests.emplace_back(), frame.prompts.emplace_back())) return false;
  }
  if (!ReadBlocks(*blocks, frame.engine)) return false;
  if (!batch->is_null() && !ReadBatch(*batch, frame.batch.emplace())) return false;
  if (!detail->is_null()) {
    JsonFields reader(*detail);
    int64_t id = 0;
    LiveDetail& read = frame.detail.emplace();
    reader.Read("id", id);
    reader.Read("prompt", read.prompt);
    reader.Read("output", read.output);
    if (!reader.ok()) return false;
    read.request_id = static_cast<RequestId>(id);
  }
  return true;
}

}  // namespace vllm::app
