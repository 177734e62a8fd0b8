#include "app/pooling/pooling_runner.h"

#include <map>
#include <utility>

#include "app/output/run_until_done.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

// The requests that run, and the results that wait for those before them.
class Window {
 public:
  Window(PoolingModel& model, const std::function<void(PooledResult& result)>& on_result)
      : model_(model), on_result_(on_result), max_requests_(4 * model.engine().config().scheduler.max_num_seqs) {}

  bool is_full() const { return num_added_ - num_returned_ >= max_requests_; }
  int64_t num_added() const { return num_added_; }
  int64_t num_failed() const { return num_failed_; }

  void Add(PoolingRequest request) {
    const int64_t index = num_added_++;
    try {
      model_.engine().AddPoolingRequest(std::to_string(index), request.prompt, request.params);
    } catch (const RequestError& error) {
      PooledResult& result = results_[index];
      result.error = error.what();
    }
  }

  void Take(const std::vector<RequestOutput>& outputs) {
    for (const RequestOutput& output : outputs) {
      PooledResult& result = results_[std::stoll(output.request_id)];
      result.values = output.pooled;
      result.num_tokens = static_cast<int64_t>(output.prompt_token_ids.size());
      result.error = output.error;
      if (result.values.empty() && result.error.empty()) result.error = "the request was aborted";
    }
    for (auto it = results_.begin(); it != results_.end() && it->first == num_returned_; it = results_.erase(it)) {
      it->second.index = num_returned_++;
      num_failed_ += it->second.error.empty() ? 0 : 1;
      on_result_(it->second);
    }
  }

 private:
  PoolingModel& model_;
  const std::function<void(PooledResult& result)>& on_result_;
  const int64_t max_requests_;
  int64_t num_added_ = 0;
  int64_t num_returned_ = 0;
  int64_t num_failed_ = 0;
  std::map<int64_t, PooledResult> results_;  // that wait, by index
};

}  // namespace

int64_t RunPooling(PoolingModel& model, TextInput& input,
                   const std::function<PoolingRequest(int64_t index, TextItem& item)>& make_request,
                   const std::function<void(PooledResult& result)>& on_result) {
  Window window(model, on_result);
  bool at_end = false, needs_input = false;
  RunCallbacks callbacks;
  callbacks.add_requests = [&] {
    needs_input = false;
    while (!at_end && !needs_input && !window.is_full()) {
      TextItem item;
      const TextInput::Status status = input.Next(item);
      if (status == TextInput::Status::kItem) window.Add(make_request(window.num_added(), item));
      at_end = status == TextInput::Status::kEnd;
      needs_input = status == TextInput::Status::kNeedInput;
      if (needs_input && input.fd() < 0) input.Fill();
    }
    return !at_end;
  };
  callbacks.input_fd = [&] { return needs_input ? input.fd() : -1; };
  callbacks.on_input = [&] { input.Fill(); };
  callbacks.on_outputs = [&](const std::vector<RequestOutput>& outputs) { window.Take(outputs); };
  RunUntilDone(model.engine(), callbacks);
  window.Take({});
  return window.num_failed();
}

std::vector<PooledResult> RunPooling(PoolingModel& model, std::vector<PoolingRequest> requests) {
  std::vector<PooledResult> results;
  const std::function<void(PooledResult&)> keep = [&](PooledResult& result) { results.push_back(std::move(result)); };
  Window window(model, keep);
  size_t next = 0;
  RunCallbacks callbacks;
  callbacks.add_requests = [&] {
    while (next < requests.size() && !window.is_full()) window.Add(std::move(requests[next++]));
    return next < requests.size();
  };
  callbacks.on_outputs = [&](const std::vector<RequestOutput>& outputs) { window.Take(outputs); };
  RunUntilDone(model.engine(), callbacks);
  window.Take({});
  return results;
}

}  // namespace vllm::app
