// HttpRequest and HttpResponse: the messages of the tests' HTTP server (http_server.h). A response also says how it is
// sent, because most faults of a network are faults of delivery. Values without threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vllm::testing_support {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

// Returns the value of the first header `name` in any letter case, or "" if there is none.
std::string HeaderValue(const HttpHeaders& headers, std::string_view name);
// Replaces the headers `name` by one with this value.
void SetHeader(HttpHeaders& headers, std::string_view name, std::string value);
void RemoveHeader(HttpHeaders& headers, std::string_view name);

struct HttpRequest {
  std::string method;
  std::string target;     // as sent: "/path?query", or "http://host/path?query" to a proxy
  std::string authority;  // the host and port of a target with a scheme, or of a CONNECT that came before
  std::string path;       // of the target, without the query; percent-encoded
  std::string query;      // after the question mark
  HttpHeaders headers;
  bool is_encrypted = false;

  std::string Header(std::string_view name) const { return HeaderValue(headers, name); }
};

// How the server sends a response. Byte counts do not include the head.
struct Delivery {
  static constexpr size_t kNever = std::numeric_limits<size_t>::max();

  size_t cut_after = kNever;    // close the connection after this many bytes of the body
  size_t stall_after = kNever;  // then send nothing until the client closes the connection
  bool never_answers = false;   // send nothing at all until the client closes the connection
  bool repeats_body = false;    // send the body again and again, without a Content-Length, until the client closes
  // If not zero, send one byte at a time and wait this long after each.
  std::chrono::milliseconds head_byte_interval{0};
  std::chrono::milliseconds body_byte_interval{0};
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;                      // without Content-Length
  std::shared_ptr<const std::string> body;  // may be null, and is not sent in answer to HEAD
  size_t body_begin = 0;                    // the part of `body` that is sent
  size_t body_size = 0;
  std::optional<std::string> content_length;  // value of Content-Length if it is not body_size
  Delivery delivery;

  void SetBody(std::string text);
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// A request that a server has received, and how it answered.
struct HttpExchange {
  HttpRequest request;
  int status = 0;  // 0 before the answer
};

}  // namespace vllm::testing_support
