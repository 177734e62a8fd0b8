#include "app/batch/batch_record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "app/batch/table/csv.h"
#include "app/output/json_text.h"
#include "app/output/result_json.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

void SetName(const RowId& id, Json& json) {
  if (id.custom_id) {
    json[id.id_key] = id.id_value;
  } else {
    json["index"] = id.index;
  }
}

Json BytesOf(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<int>(static_cast<unsigned char>(c)));
  return bytes;
}

Json OpenAiToken(const Json& ours) {
  Json token;
  token["token"] = ours["token"];
  token["logprob"] = ours["logprob"];
  token["bytes"] = BytesOf(ours["token"].get<std::string>());
  return token;
}

Json ChatLogprobs(const Logprobs& logprobs, const tokenizer::Tokenizer* tokenizer) {
  Json content = Json::array();
  for (size_t i = 0; i < logprobs.num_positions(); ++i) {
    const Json ours = LogprobJson(logprobs, i, tokenizer);
    Json token = OpenAiToken(ours);
    Json top = Json::array();
    for (const Json& other : ours["top"]) top.push_back(OpenAiToken(other));
    token["top_logprobs"] = std::move(top);
    content.push_back(std::move(token));
  }
  return Json({{"content", std::move(content)}});
}

Json CompletionLogprobs(const Logprobs& logprobs, const tokenizer::Tokenizer* tokenizer) {
  Json tokens = Json::array();
  Json token_logprobs = Json::array();
  Json tops = Json::array();
  Json offsets = Json::array();
  size_t offset = 0;
  for (size_t i = 0; i < logprobs.num_positions(); ++i) {
    const Json ours = LogprobJson(logprobs, i, tokenizer);
    tokens.push_back(ours["token"]);
    token_logprobs.push_back(ours["logprob"]);
    Json top = Json::object();
    for (const Json& other : ours["top"]) top[other["token"].get<std::string>()] = other["logprob"];
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += ours["token"].get_ref<const std::string&>().size();
  }
  Json json;
  json["text_offset"] = std::move(offsets);
  json["token_logprobs"] = std::move(token_logprobs);
  json["tokens"] = std::move(tokens);
  json["top_logprobs"] = std::move(tops);
  return json;
}

AnswerParts PartsOf(const RecordHead& head, const RequestOutput& output, const CompletionOutput& completion) {
  return SplitAnswer(head.format, output.request_id, output.prompt_token_ids, completion);
}

Json OpenAiBody(const RecordHead& head, const RequestOutput& output, const tokenizer::Tokenizer* tokenizer) {
  const bool is_chat = head.kind == RowKind::kOpenAiChat;
  Json body;
  body["id"] = (is_chat ? "chatcmpl-" : "cmpl-") + head.id.custom_id.value_or("");
  body["object"] = is_chat ? "chat.completion" : "text_completion";
  body["created"] = 0;  // a timestamp would differ between runs
  body["model"] = head.model;
  Json choices = Json::array();
  size_t num_generated = 0;
  size_t num_reasoning = 0;
  for (const CompletionOutput& completion : output.outputs) {
    const Json ours = CompletionJson(completion, false, tokenizer);
    const AnswerParts parts = PartsOf(head, output, completion);
    Json choice;
    choice["index"] = completion.index;
    if (is_chat) {
      choice["message"] = Json({{"role", "assistant"}, {"content", parts.text}});
      if (parts.reasoning) {
        // As in vLLM, content is null if the output ends before the answer.
        if (parts.reasoning->token_ids.empty()) choice["message"]["content"] = nullptr;
        const std::string& reasoning = parts.reasoning->reasoning;
        choice["message"]["reasoning"] = reasoning.empty() ? Json() : Json(reasoning);
        num_reasoning += parts.reasoning->reasoning_token_ids.size();
      }
      if (!parts.calls.empty()) {
        if (parts.text.empty()) choice["message"]["content"] = nullptr;
        choice["message"]["tool_calls"] = ToolCallsJson(parts.calls);
      }
    } else {
      choice["text"] = completion.text;
    }
    if (!head.with_logprobs) {
      choice["logprobs"] = nullptr;
    } else {
      choice["logprobs"] =
          is_chat ? ChatLogprobs(completion.logprobs, tokenizer) : CompletionLogprobs(completion.logprobs, tokenizer);
    }
    const bool ends_with_calls =
        !parts.calls.empty() && !parts.calls.back().is_cut && completion.finish_reason == FinishReason::kStop;
    choice["finish_reason"] = ends_with_calls ? Json("tool_calls") : ours["finish_reason"];
    choice["stop_reason"] = ours["stop_reason"];
    choices.push_back(std::move(choice));
    num_generated += completion.token_ids.size();
  }
  body["choices"] = std::move(choices);
  const size_t num_prompt = output.prompt_token_ids.size();
  body["usage"] = Json({{"prompt_tokens", num_prompt},
                        {"completion_tokens", num_generated},
                        {"total_tokens", num_prompt + num_generated}});
  if (head.format.reasoning != nullptr) {
    body["usage"]["completion_tokens_details"] = Json({{"reasoning_tokens", num_reasoning}});
  }
  if (head.with_prompt_logprobs) body["prompt_logprobs"] = PromptLogprobsJson(output, tokenizer);
  return body;
}

}  // namespace

std::string ResultRecord(const RecordHead& head, const RequestOutput& output, const tokenizer::Tokenizer* tokenizer) {
  Json json;
  if (head.kind != RowKind::kPlain) {
    const std::string custom_id = head.id.custom_id.value_or("");
    json["id"] = "vllm-" + custom_id;
    json["custom_id"] = custom_id;
    json["response"] = Json({{"status_code", 200},
                             {"request_id", "vllm-batch-" + custom_id},
                             {"body", OpenAiBody(head, output, tokenizer)}});
    json["error"] = nullptr;
    return DumpJson(json);
  }
  SetName(head.id, json);
  json["prompt_tokens"] = output.prompt_token_ids.size();
  Json outputs = Json::array();
  for (const CompletionOutput& completion : output.outputs) {
    const AnswerParts parts = PartsOf(head, output, completion);
    Json json_output =
        CompletionJson(completion, head.with_logprobs, tokenizer, parts.reasoning ? &*parts.reasoning : nullptr);
    json_output["text"] = parts.text;
    if (head.format.tool_calls != nullptr && head.format.tools.may_call()) {
      json_output["tool_calls"] = ToolCallsJson(parts.calls);
    }
    outputs.push_back(std::move(json_output));
  }
  json["outputs"] = std::move(outputs);
  if (head.with_prompt_logprobs) json["prompt_logprobs"] = PromptLogprobsJson(output, tokenizer);
  if (!head.carried.is_null()) json["input"] = head.carried;
  return DumpJson(json);
}

namespace {

Json ErrorJson(const RecordHead& head, std::string_view code, std::string_view message) {
  const RowId& id = head.id;
  Json error;
  error["code"] = code;
  error["message"] = message;
  error["line"] = id.line;
  Json json;
  if (id.is_openai) {
    json["id"] = "vllm-" + id.custom_id.value_or(std::to_string(id.index));
    json["custom_id"] = id.custom_id ? Json(*id.custom_id) : Json();
    json["response"] = nullptr;
  } else {
    SetName(id, json);
  }
  json["error"] = std::move(error);
  return json;
}

}  // namespace

std::string ErrorRecord(const RecordHead& head, std::string_view code, std::string_view message) {
  Json json = ErrorJson(head, code, message);
  if (!head.carried.is_null() && !head.id.is_openai) json["input"] = head.carried;
  return DumpJson(json);
}

namespace {

// Returns the text of an answer where there is no field for calls: they follow it, as JSON.
std::string TextOf(const AnswerParts& parts) {
  std::string text = parts.text;
  if (parts.calls.empty()) return text;
  return text + (text.empty() ? "" : "\n") + DumpJson(ToolCallsJson(parts.calls));
}

}  // namespace

std::string TextRecord(const RecordHead& head, const RequestOutput& output) {
  std::string text;
  for (const CompletionOutput& completion : output.outputs) {
    if (&completion != &output.outputs.front()) text += '\n';
    text += TextOf(PartsOf(head, output, completion));
  }
  return text;
}

std::string TableFormat::Head() const {
  std::vector<std::string> names = columns.empty() ? std::vector<std::string>{"id"} : columns;
  names.insert(names.end(), {"output", "finish_reason", "error"});
  return CsvRecord(names, delimiter);
}

namespace {

// Returns the fields of the input that each line of a table has.
std::vector<std::string> InputFields(const RecordHead& head, size_t num_columns) {
  if (num_columns == 0) return {head.id.custom_id.value_or(std::to_string(head.id.index))};
  std::vector<std::string> fields = head.fields;
  fields.resize(num_columns);  // a row that could not be split has none
  return fields;
}

}  // namespace

std::string TableFormat::Result(const RecordHead& head, const RequestOutput& output) const {
  std::string record;
  for (const CompletionOutput& completion : output.outputs) {
    std::vector<std::string> fields = InputFields(head, columns.size());
    fields.push_back(TextOf(PartsOf(head, output, completion)));
    fields.emplace_back(ToString(completion.finish_reason));
    fields.emplace_back();
    if (!record.empty()) record += '\n';
    record += CsvRecord(fields, delimiter);
  }
  return record;
}

std::string TableFormat::Error(const RecordHead& head, std::string_view message) const {
  std::vector<std::string> fields = InputFields(head, columns.size());
  fields.insert(fields.end(), {"", "", std::string(message)});
  return CsvRecord(fields, delimiter);
}

std::string RetryHead(InputFormat format, const TableFormat& table) {
  if (format != InputFormat::kCsv && format != InputFormat::kTsv) return "";
  std::vector<std::string> names = table.columns;
  if (std::find(names.begin(), names.end(), "error") == names.end()) names.emplace_back("error");
  return CsvRecord(names, format == InputFormat::kTsv ? '\t' : ',');
}

std::string RetryRecord(const RecordHead& head, InputFormat format, const TableFormat& table, std::string_view code,
                        std::string_view message) {
  if (format == InputFormat::kText) return head.input_record;
  if (format == InputFormat::kJsonLines) {
    Json json = ErrorJson(head, code, message);
    Json row;
    if (ParseJsonText(head.input_record, row).empty() && row.is_object()) {
      json.erase("index");  // of this input; the row has another one in the errors file
      for (const auto& [name, value] : row.items()) {
        if (!json.contains(name)) json[name] = value;
      }
    } else {
      json["text"] = head.input_record;
    }
    return DumpJson(json);
  }
  std::vector<std::string> fields = InputFields(head, table.columns.size());
  const auto error = std::find(table.columns.begin(), table.columns.end(), "error");
  if (error == table.columns.end()) {
    fields.emplace_back(message);
  } else {
    fields[static_cast<size_t>(error - table.columns.begin())] = message;
  }
  return CsvRecord(fields, format == InputFormat::kTsv ? '\t' : ',');
}

}  // namespace vllm::app
