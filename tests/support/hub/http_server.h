// HttpServer: an HTTP/1.1 server on 127.0.0.1 for tests. It answers GET and HEAD requests with the responses of a
// handler, in clear text or with TLS, records the requests, and misbehaves on the wire as each response says. It also
// understands the two kinds of requests that clients send to a proxy: targets with a scheme and host, which the handler
// answers in the host's place, and CONNECT, after which the connection is encrypted as if it led to the host.
//
// Owned by a test. It has one thread that accepts connections and one per connection; the destructor joins them. The
// handler is called on the connections' threads. Public functions may be called on any thread.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/hub/byte_gate.h"
#include "tests/support/hub/http_message.h"
#include "tests/support/hub/socket_stream.h"
#include "tests/support/hub/tls_certificate.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::testing_support {

struct HttpServerOptions {
  const TlsCertificate* certificate = nullptr;  // null: clear text. Read by the constructor only.
  // Answer clear-text requests, and encrypt connections only after CONNECT.
  bool is_proxy = false;
  int port = 0;  // 0: a free port
};

class HttpServer {
 public:
  // REQUIRES: `gate` outlives the server.
  HttpServer(HttpHandler handler, ByteGate& gate, const HttpServerOptions& options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  // Returns "http://HOST:PORT" or "https://HOST:PORT".
  std::string Url(const std::string& host = "127.0.0.1") const;

  // Returns the requests in the order of their arrival. CONNECT requests are among them.
  std::vector<HttpExchange> Exchanges() const;
  void ForgetExchanges();
  // Waits until a request for which `is_wanted` returns true has arrived since ForgetExchanges. Returns false after a
  // minute without one.
  bool WaitForRequest(const std::function<bool(const HttpRequest&)>& is_wanted);
  int num_connections() const { return num_connections_; }
  int num_failed_handshakes() const { return num_failed_handshakes_; }

 private:
  struct Connection {
    explicit Connection(int fd) : stream(fd) {}
    SocketStream stream;
    std::thread thread;
    std::atomic<bool> is_done{false};
  };
  struct FreeContext {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  void Accept();
  void Serve(SocketStream& stream);
  // Returns false if the connection must be closed.
  bool Send(SocketStream& stream, const HttpRequest& request, const HttpResponse& response);
  bool SendBody(SocketStream& stream, const HttpResponse& response);
  size_t Record(const HttpRequest& request);
  void RecordStatus(size_t index, int status);

  const HttpHandler handler_;
  ByteGate& gate_;
  const bool is_proxy_;
  std::unique_ptr<SSL_CTX, FreeContext> tls_;
  tokenizer::UniqueFd listener_;
  int port_ = 0;
  std::atomic<int> num_connections_{0};
  std::atomic<int> num_failed_handshakes_{0};

  mutable std::mutex mutex_;
  std::condition_variable request_arrived_;
  std::vector<HttpExchange> exchanges_;
  size_t num_forgotten_ = 0;  // exchanges that were removed from the vector's front
  std::list<Connection> connections_;
  bool is_stopping_ = false;
  std::thread acceptor_;
};

}  // namespace vllm::testing_support
