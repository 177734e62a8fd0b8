#include "app/chat/answer_calls.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "app/output/json_text.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

std::string AnswerCalls::Restart(std::string_view prior_text) {
  output_ = {};
  parser_.reset();
  if (format_ != nullptr) parser_.emplace(*format_, tools_, request_id_);
  return Take(prior_text, /*is_final=*/false, /*is_cut=*/false);
}

std::string AnswerCalls::Take(std::string_view text, bool is_final, bool is_cut) {
  if (!parser_) return std::string(text);
  const size_t size = output_.text.size();
  std::vector<ToolCallEvent> events;
  parser_->Feed(text, events);
  if (is_final) parser_->Finish(events, is_cut);
  output_.Add(events);
  if (is_final) {
    output_.error = parser_->error();
    parser_.reset();
  }
  return output_.text.substr(size);
}

std::string CallsJson(const std::vector<ToolCall>& calls) {
  if (calls.empty()) return "";
  Json list = Json::array();
  for (const ToolCall& call : calls) {
    Json arguments;
    const bool is_object = ParseJsonText(call.arguments, arguments).empty() && arguments.is_object();
    if (!is_object) arguments = call.arguments;
    list.push_back({{"id", call.id},
                    {"type", "function"},
                    {"function", {{"name", call.name}, {"arguments", std::move(arguments)}}}});
  }
  return DumpJson(list);
}

std::vector<ToolCall> CallsIn(const std::string& tool_calls_json) {
  std::vector<ToolCall> calls;
  Json list;
  if (tool_calls_json.empty() || !ParseJsonText(tool_calls_json, list).empty() || !list.is_array()) return calls;
  for (const Json& item : list) {
    const Json function = item.is_object() ? item.value("function", Json()) : Json();
    if (!function.is_object()) return {};
    const Json id = item.value("id", Json());
    const Json name = function.value("name", Json());
    const Json arguments = function.value("arguments", Json());
    if (!id.is_string() || !name.is_string()) return {};
    calls.push_back({id, name, arguments.is_string() ? arguments.get<std::string>() : DumpJson(arguments)});
  }
  return calls;
}

}  // namespace vllm::app
