#include "tests/support/hub/socket_stream.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

namespace vllm::testing_support {

bool SocketStream::StartTls(SSL_CTX* context) {
  tls_.reset(SSL_new(context));
  if (tls_ == nullptr || SSL_set_fd(tls_.get(), fd_.get()) != 1) return false;
  ERR_clear_error();
  return SSL_accept(tls_.get()) == 1;
}

size_t SocketStream::Read(char* buffer, size_t size) {
  if (tls_ == nullptr) {
    const ssize_t got = recv(fd_.get(), buffer, size, 0);
    return got > 0 ? static_cast<size_t>(got) : 0;
  }
  ERR_clear_error();
  size_t got = 0;
  return SSL_read_ex(tls_.get(), buffer, size, &got) == 1 ? got : 0;
}

bool SocketStream::Write(std::string_view bytes) {
  if (tls_ != nullptr) {
    ERR_clear_error();
    size_t written = 0;
    // Without SSL_MODE_ENABLE_PARTIAL_WRITE, success means that all bytes are written.
    return bytes.empty() || SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &written) == 1;
  }
  while (!bytes.empty()) {
    const ssize_t written = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool SocketStream::WaitForClose(std::chrono::milliseconds limit) {
  pollfd wait = {fd_.get(), POLLRDHUP, 0};
  return poll(&wait, 1, limit.count() < 0 ? -1 : static_cast<int>(limit.count())) != 0;
}

void SocketStream::Shutdown() { shutdown(fd_.get(), SHUT_RDWR); }

}  // namespace vllm::testing_support
