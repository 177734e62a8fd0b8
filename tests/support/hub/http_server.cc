#include "tests/support/hub/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace vllm::testing_support {
namespace {

constexpr size_t kMaxHeadBytes = 64 << 10;
constexpr size_t kMaxConnections = 256;
constexpr size_t kMaxExchanges = 200'000;
// Small enough that cuts and the gate's limit are exact, and that a closed connection is noticed soon.
constexpr size_t kPieceBytes = 16 << 10;

const char* ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 206:
      return "Partial Content";
    case 302:
      return "Found";
    case 307:
      return "Temporary Redirect";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 416:
      return "Range Not Satisfiable";
    case 429:
      return "Too Many Requests";
    default:
      return status < 500 ? "Status" : "Server Error";
  }
}

// Reads the head of a request, including the empty line. Returns "" at the end of the connection or if the head is too
// long. `rest` keeps the bytes that follow.
std::string ReadHead(SocketStream& stream, std::string& rest) {
  std::string head = std::move(rest);
  rest.clear();
  size_t searched = 0;
  char buffer[4096];
  while (true) {
    const size_t end = head.find("\r\n\r\n", searched);
    if (end != std::string::npos) {
      rest = head.substr(end + 4);
      head.resize(end + 4);
      return head;
    }
    if (head.size() > kMaxHeadBytes) return "";
    searched = head.size() < 3 ? 0 : head.size() - 3;
    const size_t got = stream.Read(buffer, sizeof(buffer));
    if (got == 0) return "";
    head.append(buffer, got);
  }
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<HttpRequest> ParseHead(std::string_view head) {
  HttpRequest request;
  size_t line_end = head.find("\r\n");
  const std::string_view first = head.substr(0, line_end);
  const size_t method_end = first.find(' ');
  const size_t target_end = first.rfind(' ');
  if (method_end == std::string_view::npos || target_end <= method_end) return std::nullopt;
  request.method = first.substr(0, method_end);
  request.target = first.substr(method_end + 1, target_end - method_end - 1);
  for (size_t begin = line_end + 2; (line_end = head.find("\r\n", begin)) != begin; begin = line_end + 2) {
    const std::string_view line = head.substr(begin, line_end - begin);
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    request.headers.emplace_back(line.substr(0, colon), Trimmed(line.substr(colon + 1)));
  }
  std::string_view target = request.target;
  if (request.method == "CONNECT") {
    request.authority = target;
    return request;
  }
  const size_t scheme_end = target.find("://");
  if (!target.starts_with('/') && scheme_end != std::string_view::npos) {
    target.remove_prefix(scheme_end + 3);
    const size_t slash = std::min(target.find('/'), target.size());
    request.authority = target.substr(0, slash);
    target.remove_prefix(slash);
  }
  const size_t question = target.find('?');
  request.path = target.substr(0, question);
  if (question != std::string_view::npos) request.query = target.substr(question + 1);
  return request;
}

bool WriteSlowly(SocketStream& stream, std::string_view bytes, std::chrono::milliseconds interval) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (!stream.Write(bytes.substr(i, 1)) || stream.WaitForClose(interval)) return false;
  }
  return true;
}

}  // namespace

HttpServer::HttpServer(HttpHandler handler, ByteGate& gate, const HttpServerOptions& options)
    : handler_(std::move(handler)), gate_(gate), is_proxy_(options.is_proxy) {
  signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets without MSG_NOSIGNAL
  if (options.certificate != nullptr) tls_.reset(NewServerContext(*options.certificate));
  listener_ = tokenizer::UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(options.port));
  socklen_t size = sizeof(address);
  if (bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_.get(), 128) != 0 ||
      getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1 (port " + std::to_string(options.port) + ")");
  }
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

HttpServer::~HttpServer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    for (Connection& connection : connections_) connection.stream.Shutdown();
  }
  gate_.Close();
  shutdown(listener_.get(), SHUT_RDWR);
  acceptor_.join();
  for (Connection& connection : connections_) connection.thread.join();
}

std::string HttpServer::Url(const std::string& host) const {
  return (tls_ != nullptr && !is_proxy_ ? "https://" : "http://") + host + ":" + std::to_string(port_);
}

void HttpServer::Accept() {
  while (true) {
    const int fd = accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (is_stopping_ || fd < 0) {
      const tokenizer::UniqueFd closer(fd);
      if (is_stopping_) return;
      continue;
    }
    std::erase_if(connections_, [](Connection& connection) {
      const bool is_done = connection.is_done;
      if (is_done) connection.thread.join();
      return is_done;
    });
    ++num_connections_;
    if (connections_.size() >= kMaxConnections) {
      const tokenizer::UniqueFd closer(fd);
      continue;
    }
    // Otherwise the body waits for the acknowledgement of the head.
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    Connection& connection = connections_.emplace_back(fd);
    connection.thread = std::thread([this, &connection] {
      Serve(connection.stream);
      connection.stream.Shutdown();
      connection.is_done = true;
    });
  }
}

void HttpServer::Serve(SocketStream& stream) {
  if (tls_ != nullptr && !is_proxy_ && !stream.StartTls(tls_.get())) {
    ++num_failed_handshakes_;
    return;
  }
  std::string rest;
  std::string tunnel;  // the authority of the CONNECT request that the connection began with
  for (bool is_open = true; is_open;) {
    const std::string head = ReadHead(stream, rest);
    if (head.empty()) return;
    std::optional<HttpRequest> request = ParseHead(head);
    if (!request.has_value()) return;
    request->is_encrypted = stream.is_encrypted();
    if (request->authority.empty()) request->authority = tunnel;
    const size_t index = Record(*request);
    if (request->method == "CONNECT") {
      tunnel = request->authority;
      if (tls_ == nullptr || !stream.Write("HTTP/1.1 200 Connection established\r\n\r\n")) return;
      if (!stream.StartTls(tls_.get())) {
        ++num_failed_handshakes_;
        return;
      }
      continue;
    }
    const HttpResponse response = handler_(*request);
    RecordStatus(index, response.status);
    is_open = Send(stream, *request, response) && request->Header("Connection") != "close";
  }
}

bool HttpServer::Send(SocketStream& stream, const HttpRequest& request, const HttpResponse& response) {
  const Delivery& delivery = response.delivery;
  if (delivery.never_answers) {
    stream.WaitForClose(std::chrono::milliseconds(-1));
    return false;
  }
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " " + ReasonOf(response.status) + "\r\n";
  for (const auto& [name, value] : response.headers) head += name + ": " + value + "\r\n";
  if (!delivery.repeats_body) {
    head += "Content-Length: " + response.content_length.value_or(std::to_string(response.body_size)) + "\r\n";
  }
  head += "\r\n";
  const bool sent_head = delivery.head_byte_interval.count() > 0
                             ? WriteSlowly(stream, head, delivery.head_byte_interval)
                             : stream.Write(head);
  if (!sent_head) return false;
  if (request.method == "HEAD") return true;
  return SendBody(stream, response);
}

bool HttpServer::SendBody(SocketStream& stream, const HttpResponse& response) {
  const Delivery& delivery = response.delivery;
  const std::string_view body = response.body == nullptr
                                    ? std::string_view()
                                    : std::string_view(*response.body).substr(response.body_begin, response.body_size);
  size_t num_sent = 0;
  do {
    for (size_t begin = 0; begin < body.size();) {
      const size_t allowed = std::min(delivery.cut_after, delivery.stall_after) - num_sent;
      if (allowed == 0) {
        if (delivery.cut_after > num_sent) stream.WaitForClose(std::chrono::milliseconds(-1));
        return false;
      }
      const size_t wanted = delivery.body_byte_interval.count() > 0 ? 1 : kPieceBytes;
      const size_t num_bytes = gate_.Take(std::min({wanted, allowed, body.size() - begin}));
      if (num_bytes == 0) return false;
      // The client may have ended while the gate was closed. A write would succeed, because the kernel does not know
      // yet that nobody will read it.
      if (stream.WaitForClose(std::chrono::milliseconds(0))) {
        gate_.GiveBack(num_bytes);
        return false;
      }
      if (!stream.Write(body.substr(begin, num_bytes))) return false;
      if (delivery.body_byte_interval.count() > 0 && stream.WaitForClose(delivery.body_byte_interval)) return false;
      begin += num_bytes;
      num_sent += num_bytes;
    }
  } while (delivery.repeats_body && !body.empty());
  // A body that is shorter than the Content-Length ends with the connection, as if a proxy had lost the rest.
  return !response.content_length.has_value() && delivery.cut_after > num_sent;
}

size_t HttpServer::Record(const HttpRequest& request) {
  const std::lock_guard lock(mutex_);
  if (exchanges_.size() < kMaxExchanges) exchanges_.push_back({request, 0});
  request_arrived_.notify_all();
  return num_forgotten_ + exchanges_.size() - 1;
}

void HttpServer::RecordStatus(size_t index, int status) {
  const std::lock_guard lock(mutex_);
  if (index >= num_forgotten_ && index - num_forgotten_ < exchanges_.size()) {
    exchanges_[index - num_forgotten_].status = status;
  }
}

std::vector<HttpExchange> HttpServer::Exchanges() const {
  const std::lock_guard lock(mutex_);
  return exchanges_;
}

void HttpServer::ForgetExchanges() {
  const std::lock_guard lock(mutex_);
  num_forgotten_ += exchanges_.size();
  exchanges_.clear();
}

bool HttpServer::WaitForRequest(const std::function<bool(const HttpRequest&)>& is_wanted) {
  std::unique_lock lock(mutex_);
  size_t next = 0;
  return request_arrived_.wait_for(lock, std::chrono::minutes(1), [&] {
    for (; next < exchanges_.size(); ++next) {
      if (is_wanted(exchanges_[next].request)) return true;
    }
    return false;
  });
}

}  // namespace vllm::testing_support
