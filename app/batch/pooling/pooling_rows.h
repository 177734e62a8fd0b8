// PoolingRows: the rows of a batch for vectors and rankings. Each text of a row is a separate request. The record of
// the row is made when all of its requests have finished. Owned by the BatchRunner; main thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/batch/input/batch_row.h"
#include "app/pooling/pooling_prompts.h"
#include "engine/frontend/input_processor.h"
#include "engine/frontend/llm_engine.h"

namespace vllm::app {

class PoolingRows {
 public:
  // Borrows `prompts`; null: the rows are rejected.
  explicit PoolingRows(PoolingPrompts* prompts) : prompts_(prompts) {}

  // Adds the requests of a row. Throws RequestError if one is invalid; the others are aborted then.
  void Add(LLMEngine& engine, const std::string& row_id, const BatchRow& row);
  // Throws RequestError if the row is invalid, without an engine.
  void Check(const InputProcessor& processor, const BatchRow& row);
  // Returns true if the request belongs to a row.
  bool Owns(const std::string& request_id) const { return parts_.contains(request_id); }
  // Takes the output of a request. Returns the id of its row if that has finished.
  std::optional<std::string> Take(const RequestOutput& output);
  void Abort(LLMEngine& engine, const std::string& row_id);

  struct Result {
    std::string error;  // of the first text that has failed
    bool is_aborted = false;
    int64_t num_prompt_tokens = 0;
    int64_t num_cached_tokens = 0;
    std::string record;  // an OpenAI batch response, as one line of JSON
  };
  // Removes a finished row and returns its result.
  Result Finish(const RowId& id, const std::string& model, const std::string& row_id);

 private:
  struct Part {
    std::string row_id;
    size_t index = 0;
  };
  struct Row {
    RowKind kind = RowKind::kEmbedding;
    PoolingInput input;
    std::vector<std::vector<float>> values;  // [number of requests]
    size_t num_left = 0;
    Result result;
  };
  std::vector<PoolingRequest> RequestsOf(const BatchRow& row);

  PoolingPrompts* prompts_;
  std::unordered_map<std::string, Part> parts_;  // by the id of the request
  std::unordered_map<std::string, Row> rows_;
};

}  // namespace vllm::app
