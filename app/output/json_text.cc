#include "app/output/json_text.h"

#include <nlohmann/json.hpp>

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxDepth = 128;  // real prompts have far fewer levels

}  // namespace

std::string ParseJsonText(std::string_view text, Json& json) {
  bool too_deep = false;
  const auto check_depth = [&too_deep](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) too_deep = true;
    return depth <= kMaxDepth;
  };
  try {
    json = Json::parse(text.begin(), text.end(), check_depth);
  } catch (const Json::exception& error) {
    // The message is "[json.exception.parse_error.101] parse error at line 1, column 5: ...; last read: ...". Remove
    // the last part, which may contain the prompt.
    std::string message = error.what();
    if (const size_t bracket = message.find("] "); bracket != std::string::npos) message.erase(0, bracket + 2);
    if (const size_t last = message.find("; last read"); last != std::string::npos) message.resize(last);
    return message;
  }
  return too_deep ? "nested too deeply (limit " + std::to_string(kMaxDepth) + ")" : "";
}

std::string DumpJson(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace vllm::app
