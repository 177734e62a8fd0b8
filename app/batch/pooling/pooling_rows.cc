#include "app/batch/pooling/pooling_rows.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"
#include "app/pooling/vector_writer.h"
#include "engine/config/errors.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

std::string PartId(const std::string& row_id, size_t index) { return "part-" + std::to_string(index) + ":" + row_id; }

Json EmbeddingBody(const PoolingInput& input, const std::vector<std::vector<float>>& vectors) {
  Json body;
  body["object"] = "list";
  Json data = Json::array();
  for (size_t i = 0; i < vectors.size(); ++i) {
    Json embedding = input.is_base64 ? Json(VectorBase64(vectors[i])) : Json::parse(VectorJson(vectors[i]));
    data.push_back(Json({{"index", i}, {"object", "embedding"}, {"embedding", std::move(embedding)}}));
  }
  body["data"] = std::move(data);
  return body;
}

Json RerankBody(const PoolingInput& input, const std::vector<float>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  if (input.top_n > 0 && order.size() > static_cast<size_t>(input.top_n))
    order.resize(static_cast<size_t>(input.top_n));
  Json results = Json::array();
  for (const size_t i : order) {
    const std::string list = VectorJson({&scores[i], 1});
    results.push_back(Json(
        {{"index", i}, {"document", Json({{"text", input.texts[i]}})}, {"relevance_score", Json::parse(list)[0]}}));
  }
  return Json({{"results", std::move(results)}});
}

}  // namespace

std::vector<PoolingRequest> PoolingRows::RequestsOf(const BatchRow& row) {
  if (prompts_ == nullptr)
    throw RequestError("url: vectors and rankings need a model with a tokenizer, in one process");
  const PoolingInput& input = row.pooling;
  std::vector<PoolingRequest> requests;
  if (row.kind == RowKind::kRerank && prompts_->scores_pairs()) {
    if (prompts_->pooler().classifier->num_labels != 1) {
      throw RequestError("url: the model's classifier has several labels, and a ranking needs one");
    }
    for (const std::string& document : input.texts) requests.push_back(prompts_->Score(input.query, document));
    return requests;
  }
  if (row.kind == RowKind::kRerank) requests.push_back(prompts_->Embed(input.query));
  for (const std::string& text : input.texts) requests.push_back(prompts_->Embed(text));
  for (const std::vector<int32_t>& ids : input.token_ids) requests.push_back({{ids, {}}, {}});
  for (PoolingRequest& request : requests) {
    if (input.dimensions > 0) request.params.dimensions = input.dimensions;
  }
  return requests;
}

void PoolingRows::Check(const InputProcessor& processor, const BatchRow& row) {
  for (const PoolingRequest& request : RequestsOf(row)) {
    ProcessedInput input = processor.ProcessPooling("check", request.prompt, request.params);
    processor.SetLoRA(row.options.lora, input);
  }
}

void PoolingRows::Add(LLMEngine& engine, const std::string& row_id, const BatchRow& row) {
  const std::vector<PoolingRequest> requests = RequestsOf(row);
  Row& added = rows_[row_id];
  added.kind = row.kind;
  added.input = row.pooling;
  added.values.resize(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const std::string id = PartId(row_id, i);
    try {
      engine.AddPoolingRequest(id, requests[i].prompt, requests[i].params, row.options);
    } catch (...) {
      Abort(engine, row_id);
      throw;
    }
    parts_.emplace(id, Part{row_id, i});
    ++added.num_left;
  }
}

void PoolingRows::Abort(LLMEngine& engine, const std::string& row_id) {
  const auto row = rows_.find(row_id);
  if (row == rows_.end()) return;
  for (size_t i = 0; i < row->second.values.size(); ++i) {
    const std::string id = PartId(row_id, i);
    if (parts_.erase(id) > 0) engine.AbortRequest(id);
  }
  rows_.erase(row);
}

std::optional<std::string> PoolingRows::Take(const RequestOutput& output) {
  const auto part = parts_.find(output.request_id);
  if (part == parts_.end()) return std::nullopt;
  const auto [row_id, index] = std::move(part->second);
  parts_.erase(part);
  Row& row = rows_.at(row_id);
  row.values[index] = output.pooled;
  row.result.num_prompt_tokens += static_cast<int64_t>(output.prompt_token_ids.size());
  row.result.num_cached_tokens += output.num_cached_tokens;
  if (row.result.error.empty()) row.result.error = output.error;
  row.result.is_aborted = row.result.is_aborted || (output.pooled.empty() && output.error.empty());
  if (--row.num_left > 0) return std::nullopt;
  return row_id;
}

PoolingRows::Result PoolingRows::Finish(const RowId& id, const std::string& model, const std::string& row_id) {
  const auto found = rows_.find(row_id);
  Row row = std::move(found->second);
  rows_.erase(found);
  Result& result = row.result;
  if (!result.error.empty() || result.is_aborted) return result;
  Json body;
  const std::string custom_id = id.custom_id.value_or("");
  body["id"] = (row.kind == RowKind::kRerank ? "rerank-" : "embd-") + custom_id;
  body["created"] = 0;  // a timestamp would differ between runs
  body["model"] = model;
  if (row.kind == RowKind::kEmbedding) {
    body.update(EmbeddingBody(row.input, row.values));
  } else {
    std::vector<float> scores;
    if (prompts_->scores_pairs()) {
      for (const std::vector<float>& values : row.values) scores.push_back(values[0]);
    } else {
      for (size_t i = 1; i < row.values.size(); ++i) {
        scores.push_back(static_cast<float>(prompts_->Similarity(row.values[0], row.values[i])));
      }
    }
    body.update(RerankBody(row.input, scores));
  }
  body["usage"] = Json({{"prompt_tokens", result.num_prompt_tokens}, {"total_tokens", result.num_prompt_tokens}});
  Json json;
  json["id"] = "vllm-" + custom_id;
  json["custom_id"] = custom_id;
  json["response"] = Json({{"status_code", 200}, {"request_id", "vllm-batch-" + custom_id}, {"body", std::move(body)}});
  json["error"] = nullptr;
  result.record = DumpJson(json);
  return result;
}

}  // namespace vllm::app
