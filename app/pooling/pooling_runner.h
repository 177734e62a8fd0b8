// RunPooling: runs requests for vectors and scores, and returns their results in the order of the requests. Main
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "app/pooling/pooling_model.h"
#include "app/pooling/text_input.h"

namespace vllm::app {

struct PooledResult {
  int64_t index = 0;  // of the request, from 0
  std::vector<float> values;
  int64_t num_tokens = 0;
  std::string error;  // if not empty, the request has failed
};

// Calls make_request for each text of `input`, and on_result for each request in their order, while others run. The
// number of requests whose results are kept is limited. Throws what they throw, Interrupted, OutputClosed, and what
// TextInput throws. Returns the number of failed requests.
int64_t RunPooling(PoolingModel& model, TextInput& input,
                   const std::function<PoolingRequest(int64_t index, TextItem& item)>& make_request,
                   const std::function<void(PooledResult& result)>& on_result);

// Runs the requests and returns the results in their order.
std::vector<PooledResult> RunPooling(PoolingModel& model, std::vector<PoolingRequest> requests);

}  // namespace vllm::app
