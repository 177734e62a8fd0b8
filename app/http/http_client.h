// HttpClient: runs several HTTP transfers at once on the thread that polls it, with libcurl. Follows no redirects and
// repeats no requests; its callers do, because only they know which headers may go to which host. Proxies are those of
// the environment. Certificates are verified; CURL_CA_BUNDLE, REQUESTS_CA_BUNDLE or SSL_CERT_FILE names another list of
// authorities. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/http/http_head.h"

namespace vllm::app {

struct HttpRequest {
  enum class Method : uint8_t { kGet, kHead } method = Method::kGet;
  std::string url;
  std::vector<std::string> headers;       // "Name: value"
  int64_t begin = 0;                      // the range [begin, end) of the body
  int64_t end = -1;                       // -1: the whole body, without a Range header
  std::chrono::seconds idle_timeout{10};  // for a connection, and for a transfer that is almost at a standstill
  std::chrono::seconds total_timeout{0};  // 0: none
};

// How a transfer ended.
struct HttpOutcome {
  std::string error;         // empty: the response is complete
  bool is_temporary = true;  // the same request may succeed later; false for example if a certificate is invalid
};

// Receives one response. The calls come from HttpClient::Poll. If a call throws, Poll cancels the transfer and
// rethrows.
class HttpReceiver {
 public:
  virtual ~HttpReceiver() = default;
  // Receives the head of the final response, before its body. Returns false to cancel the transfer; OnDone follows.
  virtual bool OnHead(const HttpHead& head) = 0;
  // Returns false to cancel the transfer.
  virtual bool OnBody(std::string_view bytes) = 0;
  // The last call. The receiver may start other transfers and may delete itself.
  virtual void OnDone(const HttpOutcome& outcome) = 0;
};

class HttpClient {
 public:
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Starts a transfer. The receiver is borrowed until OnDone or Cancel. Throws ResourceError.
  void Start(const HttpRequest& request, HttpReceiver* receiver);
  // Ends the transfers of a receiver without a call of OnDone. REQUIRES: not called from OnHead or OnBody.
  void Cancel(const HttpReceiver* receiver);
  // Waits at most `limit` until something happens on a transfer or `wake_fd` is readable (-1: none), then makes the
  // calls of the receivers.
  void Poll(std::chrono::milliseconds limit, int wake_fd);

 private:
  struct Transfer;

  std::unique_ptr<Transfer> Take(const void* easy);

  void* multi_;  // CURLM; libcurl's header stays out of this one
  std::vector<std::unique_ptr<Transfer>> transfers_;
};

}  // namespace vllm::app
