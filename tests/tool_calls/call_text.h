// Helpers for tests of tool calls: tools with known parameters, and a writer of calls in the syntax of any format. Pure
// functions; any thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tool_calls/syntax/tool_call_format.h"
#include "engine/tool_calls/syntax/tool_set.h"
#include "engine/tool_calls/tool_call_parser.h"

namespace vllm::testing_support {

using OrderedJson = nlohmann::ordered_json;

struct NamedCall {
  std::string name;
  OrderedJson arguments;
};

// Arguments of get_weather with all types, and with characters that formats must escape or quote.
inline OrderedJson WeatherArguments() {
  return {{"city", "Zürich \"East\", 'x' {[\\]}"},
          {"days", 3},
          {"factor", -1.5},
          {"hourly", true},
          {"tags", {"a", "b, c", 1, nullptr}},
          {"options", {{"deep", {{"x", {1, 2, {{"y", "}"}}}}}}, {"e", OrderedJson::object()}}},
          {"note", nullptr}};
}

// Tools with one parameter of each type.
inline std::shared_ptr<const ToolSet> TestTools() {
  return std::make_shared<const ToolSet>(ParseToolDefinitions(R"([
    {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
      "type": "object", "properties": {
        "city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}, "days": {"type": "integer"},
        "factor": {"type": "number"}, "hourly": {"type": "boolean"}, "tags": {"type": "array"},
        "options": {"type": "object"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}}},
    {"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}},
    {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}},
    {"name": "send-mail.v2", "parameters": {"$defs": {"Text": {"type": "string"}}, "properties": {
      "body": {"$ref": "#/$defs/Text"}, "to": {"type": ["string", "array"]}}}}
  ])"));
}

inline std::string ReplaceAll(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

inline std::string PythonText(const OrderedJson& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  std::string text;
  if (value.is_array()) {
    for (const OrderedJson& element : value) text += (text.empty() ? "" : ", ") + PythonText(element);
    return "[" + text + "]";
  }
  if (value.is_object()) {
    for (const auto& [key, element] : value.items()) {
      text += (text.empty() ? "" : ", ") + PythonText(key) + ": " + PythonText(element);
    }
    return "{" + text + "}";
  }
  if (!value.is_string()) return value.dump();
  text = ReplaceAll(ReplaceAll(value.get<std::string>(), "\\", "\\\\"), "'", "\\'");
  return "'" + ReplaceAll(text, "\n", "\\n") + "'";
}

inline std::string GemmaText(const OrderedJson& value, std::string_view mark) {
  std::string text;
  if (value.is_string()) return std::string(mark) + value.get<std::string>() + std::string(mark);
  if (value.is_array()) {
    for (const OrderedJson& element : value) text += (text.empty() ? "" : ",") + GemmaText(element, mark);
    return "[" + text + "]";
  }
  if (!value.is_object()) return value.dump();
  for (const auto& [key, element] : value.items()) {
    text += (text.empty() ? "" : ",") + std::string(key) + ":" + GemmaText(element, mark);
  }
  return "{" + text + "}";
}

inline std::string ArgumentsText(const CallSyntax& syntax, const OrderedJson& arguments) {
  std::string text;
  switch (syntax.style) {
    case ArgumentStyle::kJson:
      return arguments.dump();
    case ArgumentStyle::kGemma:
      return GemmaText(arguments, syntax.string_mark);
    case ArgumentStyle::kPythonic:
      for (const auto& [key, value] : arguments.items()) {
        text += (text.empty() ? "" : ", ") + std::string(key) + "=" + PythonText(value);
      }
      return text;
    case ArgumentStyle::kXmlParameters:
    case ArgumentStyle::kKeyValueTags:
      break;
  }
  for (const auto& [key, value] : arguments.items()) {
    text += std::string(syntax.parameter_begin) + std::string(key);
    text += ReplaceAll(std::string(syntax.key_end), "%TYPE%", value.is_string() ? "true" : "false");
    text += std::string(syntax.value_begin) + (value.is_string() ? value.get<std::string>() : value.dump());
    text += syntax.parameter_end;
  }
  return text;
}

// Writes calls as CallSyntax specifies.
inline std::string CallsText(const CallSyntax& syntax, const std::vector<NamedCall>& calls) {
  std::string text(syntax.section_begin);
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i > 0) text += syntax.separator;
    std::string frame = std::string(syntax.begin) + std::string(syntax.name_prefix) + calls[i].name +
                        std::string(syntax.name_suffix) + std::string(syntax.arguments_begin);
    text += ReplaceAll(frame, "%INDEX%", std::to_string(i)) + ArgumentsText(syntax, calls[i].arguments);
    text += std::string(syntax.arguments_end) + std::string(syntax.end);
  }
  return text + std::string(syntax.section_end);
}

// Merges adjacent events of one kind, so that the events of differently split outputs can be compared.
inline std::vector<ToolCallEvent> Merged(const std::vector<ToolCallEvent>& events) {
  std::vector<ToolCallEvent> merged;
  for (const ToolCallEvent& event : events) {
    const bool has_text = event.kind != ToolCallEvent::Kind::kCallStart && event.kind != ToolCallEvent::Kind::kCallEnd;
    if (has_text && !merged.empty() && merged.back().kind == event.kind &&
        merged.back().call_index == event.call_index) {
      merged.back().text += event.text;
    } else {
      merged.push_back(event);
    }
  }
  return merged;
}

// Returns the merged events of an output that arrives in pieces. A piece ends before each offset of `ends`.
inline std::vector<ToolCallEvent> EventsOf(const ToolCallFormat& format, const std::shared_ptr<const ToolSet>& tools,
                                           std::string_view text, const std::vector<size_t>& ends) {
  ToolCallParser parser(format, tools, "request");
  std::vector<ToolCallEvent> events;
  size_t begin = 0;
  for (const size_t end : ends) {
    parser.Feed(text.substr(begin, end - begin), events);
    begin = end;
  }
  parser.Feed(text.substr(begin), events);
  parser.Finish(events);
  return Merged(events);
}

}  // namespace vllm::testing_support
