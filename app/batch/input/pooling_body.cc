#include "app/batch/input/pooling_body.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "app/batch/input/sampling_fields.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxTexts = 2048;  // OpenAI's limit of a row

std::vector<int32_t> IdsOf(const char* name, const Json& value) {
  std::vector<int32_t> ids;
  ids.reserve(value.size());
  for (const Json& element : value) {
    const int64_t id = IntegerField(name, element);
    if (!(id >= 0 && id <= std::numeric_limits<int32_t>::max())) {
      throw RowError("invalid_row", std::string(name) + ": not a token id (" + std::to_string(id) + ")");
    }
    ids.push_back(static_cast<int32_t>(id));
  }
  return ids;
}

// A text, a list of texts, a list of token ids, or a list of such lists.
void ReadInput(const Json& value, PoolingInput& input) {
  const char* const name = "input";
  if (value.is_string()) {
    input.texts.push_back(value.get<std::string>());
    return;
  }
  if (!value.is_array() || value.empty()) {
    throw RowError("invalid_row", "input: must be a text, or a list of texts or token ids that is not empty");
  }
  if (value[0].is_number()) {
    input.token_ids.push_back(IdsOf(name, value));
    return;
  }
  if (value.size() > kMaxTexts) {
    throw RowError("invalid_row",
                   "input: has " + std::to_string(value.size()) + " texts, limit " + std::to_string(kMaxTexts));
  }
  for (const Json& element : value) {
    if (element.is_array() != value[0].is_array()) throw RowError("invalid_row", "input: mixes texts and token ids");
    if (element.is_array()) {
      input.token_ids.push_back(IdsOf(name, element));
    } else {
      input.texts.push_back(TextField(name, element));
    }
  }
}

void ReadDocuments(const Json& value, PoolingInput& input) {
  if (!value.is_array() || value.empty()) throw RowError("invalid_row", "documents: must be a list of texts");
  if (value.size() > kMaxTexts) {
    throw RowError("invalid_row",
                   "documents: has " + std::to_string(value.size()) + " texts, limit " + std::to_string(kMaxTexts));
  }
  for (const Json& element : value) {
    const bool has_text = element.is_object() && element.contains("text");
    input.texts.push_back(TextField("documents", has_text ? element["text"] : element));
  }
}

}  // namespace

void ReadPoolingBody(const Json& body, BatchRow& row) {
  PoolingInput& input = row.pooling;
  const auto is_set = [&](const char* name) { return body.contains(name) && !body[name].is_null(); };
  const auto require = [&](const char* name) {
    if (!is_set(name)) throw RowError("invalid_row", std::string(name) + ": missing");
  };
  if (is_set("model")) row.model = TextField("model", body["model"]);
  if (is_set("lora")) row.options.lora = TextField("lora", body["lora"]);
  if (is_set("priority")) row.options.priority = IntegerField("priority", body["priority"]);
  if (is_set("cache_salt")) row.options.cache_salt = TextField("cache_salt", body["cache_salt"]);
  if (row.kind == RowKind::kRerank) {
    require("query");
    require("documents");
    input.query = TextField("query", body["query"]);
    ReadDocuments(body["documents"], input);
    if (is_set("top_n")) input.top_n = IntegerField("top_n", body["top_n"]);
    if (input.top_n < 0) throw RowError("invalid_row", "top_n: below 0 (" + std::to_string(input.top_n) + ")");
    return;
  }
  require("input");
  ReadInput(body["input"], input);
  if (is_set("dimensions")) {
    input.dimensions = IntegerField("dimensions", body["dimensions"]);
    if (input.dimensions < 1) {
      throw RowError("invalid_row", "dimensions: below 1 (" + std::to_string(input.dimensions) + ")");
    }
  }
  if (is_set("encoding_format")) {
    const std::string format = TextField("encoding_format", body["encoding_format"]);
    if (format != "float" && format != "base64") {
      throw RowError("invalid_row", "encoding_format: must be float or base64 (" + format.substr(0, 40) + ")");
    }
    input.is_base64 = format == "base64";
  }
}

}  // namespace vllm::app
