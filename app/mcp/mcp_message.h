// McpMessage: one JSON-RPC 2.0 message of a Model Context Protocol server, and the texts of our own messages. The
// server is not trusted: its text is checked as JSON, but no tree is built from it. Plain values and pure functions;
// any thread.
//
//   a line     message "\n", UTF-8
//   response   {"jsonrpc":"2.0","id":ID,"result":VALUE}
//   error      {"jsonrpc":"2.0","id":ID,"error":{"code":INTEGER,"message":TEXT,"data":VALUE}}
//   request    {"jsonrpc":"2.0","id":ID,"method":TEXT,"params":OBJECT}
//   notification  as a request, without id
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vllm::app {

struct McpMessage {
  enum class Kind : uint8_t {
    kResponse,
    kError,
    kRequest,
    kNotification,
    kNoise,   // no message, such as a line of a log
    kBroken,  // meant as a message, but not valid; `text` says why
  };
  Kind kind = Kind::kNoise;
  int64_t id = 0;       // of a response or an error: the number of our request; 0: none of ours
  std::string id_json;  // of a request: its id as JSON, to answer it
  std::string method;   // of a request or a notification
  std::string text;     // JSON text of the result, or of the params; the message of an error
  int64_t error_code = 0;
  std::string data;  // JSON text of an error's data; "": none

  static constexpr int64_t kMethodNotFound = -32601;
  static constexpr int64_t kUnsupportedVersion = -32022;
};

// Parses one line. Invalid UTF-8 in it becomes U+FFFD. Time is linear in its length.
McpMessage ParseMcpMessage(std::string_view line);

// Return a message with its line break. `params_json` and `id_json` are JSON text; `params_json` may be "".
std::string McpRequestLine(int64_t id, std::string_view method, std::string_view params_json);
std::string McpNotificationLine(std::string_view method, std::string_view params_json);
std::string McpResultLine(std::string_view id_json, std::string_view result_json);
std::string McpErrorLine(std::string_view id_json, int64_t code, std::string_view message);

}  // namespace vllm::app
