// SocketStream: a connected socket of the tests' HTTP server, in clear text or encrypted with TLS. Owned by the thread
// of its connection, which makes all calls except Shutdown.
#pragma once

#include <openssl/ssl.h>

#include <chrono>
#include <memory>
#include <string_view>

#include "tokenizer/formats/regular_file.h"

namespace vllm::testing_support {

class SocketStream {
 public:
  explicit SocketStream(int fd) : fd_(fd) {}

  // Encrypts the connection from here on, as a server. Returns false if the client breaks off the handshake.
  // REQUIRES: `context` lives as long as the stream.
  bool StartTls(SSL_CTX* context);
  bool is_encrypted() const { return tls_ != nullptr; }

  // Reads at least one byte. Returns 0 at the end of the connection or after an error.
  size_t Read(char* buffer, size_t size);
  // Returns false if the client has closed the connection.
  bool Write(std::string_view bytes);
  // Waits until the client closes the connection or `limit` has passed. A negative limit is no limit. Returns true if
  // the connection is closed.
  bool WaitForClose(std::chrono::milliseconds limit);
  // Ends all waits of the connection's thread. Any thread.
  void Shutdown();

 private:
  struct FreeTls {
    void operator()(SSL* tls) const { SSL_free(tls); }
  };

  tokenizer::UniqueFd fd_;
  std::unique_ptr<SSL, FreeTls> tls_;
};

}  // namespace vllm::testing_support
