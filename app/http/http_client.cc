#include "app/http/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <utility>

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

// Below this rate, a transfer counts as standing still.
constexpr long kMinBytesPerSecond = 256;
constexpr long kBufferBytes = 256 << 10;

void InitializeLibrary() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) throw ResourceError("http: cannot initialize libcurl");
  });
}

template <typename Value>
void SetOption(CURL* easy, CURLoption option, Value value) {
  const CURLcode code = curl_easy_setopt(easy, option, value);
  if (code != CURLE_OK) {
    throw ResourceError("http: cannot set option " + std::to_string(option) + ": " + curl_easy_strerror(code));
  }
}

// Returns true for failures that a second attempt cannot cure.
bool IsPermanent(CURLcode code) {
  switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return true;
    default:
      return false;
  }
}

// Returns the file with certificate authorities that the environment names, or null.
const char* CertificateFile() {
  for (const char* variable : {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

}  // namespace

struct HttpClient::Transfer {
  Transfer(const HttpRequest& request, HttpReceiver* observer);
  ~Transfer() {
    curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void SetHeaders(const std::vector<std::string>& lines);
  bool TakeHeaderLine(std::string_view line);
  HttpOutcome Outcome(CURLcode code) const;

  // Runs a call of the receiver. Exceptions must not pass through libcurl, so they wait for Poll.
  template <typename Call>
  bool Try(Call call) {
    try {
      return call();
    } catch (...) {
      exception = std::current_exception();
      return false;
    }
  }

  static size_t OnHeaderLine(char* data, size_t size, size_t count, void* self);
  static size_t OnData(char* data, size_t size, size_t count, void* self);

  CURL* easy = curl_easy_init();
  curl_slist* headers = nullptr;
  HttpReceiver* receiver;
  HttpHead head;
  bool head_is_complete = false;
  bool head_is_too_long = false;
  std::exception_ptr exception;
  std::array<char, CURL_ERROR_SIZE> error{};
};

HttpClient::Transfer::Transfer(const HttpRequest& request, HttpReceiver* observer) : receiver(observer) {
  if (easy == nullptr) throw ResourceError("http: cannot create a transfer");
  SetOption(easy, CURLOPT_URL, request.url.c_str());
  SetOption(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  // HTTP/2 would send all ranges of a file over one connection.
  SetOption(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  SetOption(easy, CURLOPT_FOLLOWLOCATION, 0L);
  SetOption(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  SetOption(easy, CURLOPT_NOSIGNAL, 1L);
  // Otherwise ending a transfer would wait for a name server that does not answer.
  SetOption(easy, CURLOPT_QUICK_EXIT, 1L);
  SetOption(easy, CURLOPT_TCP_KEEPALIVE, 1L);
  SetOption(easy, CURLOPT_USERAGENT, "vllmcli");
  SetOption(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
  SetOption(easy, CURLOPT_ERRORBUFFER, error.data());
  SetOption(easy, CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.idle_timeout.count()));
  SetOption(easy, CURLOPT_LOW_SPEED_LIMIT, kMinBytesPerSecond);
  SetOption(easy, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.idle_timeout.count()));
  SetOption(easy, CURLOPT_TIMEOUT, static_cast<long>(request.total_timeout.count()));
  if (const char* file = CertificateFile()) SetOption(easy, CURLOPT_CAINFO, file);
  if (request.method == HttpRequest::Method::kHead) SetOption(easy, CURLOPT_NOBODY, 1L);
  if (request.end >= 0) {
    const std::string range = std::to_string(request.begin) + "-" + std::to_string(request.end - 1);
    SetOption(easy, CURLOPT_RANGE, range.c_str());
  }
  SetHeaders(request.headers);
  SetOption(easy, CURLOPT_HEADERFUNCTION, &OnHeaderLine);
  SetOption(easy, CURLOPT_HEADERDATA, static_cast<void*>(this));
  SetOption(easy, CURLOPT_WRITEFUNCTION, &OnData);
  SetOption(easy, CURLOPT_WRITEDATA, static_cast<void*>(this));
  SetOption(easy, CURLOPT_PRIVATE, static_cast<void*>(this));
}

void HttpClient::Transfer::SetHeaders(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    curl_slist* longer = curl_slist_append(headers, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    headers = longer;
  }
  SetOption(easy, CURLOPT_HTTPHEADER, headers);
}

bool HttpClient::Transfer::TakeHeaderLine(std::string_view line) {
  if (head_is_complete) return true;  // a trailer
  if (const std::optional<int> status = ParseStatusLine(line)) {
    head = HttpHead(*status);
    return true;
  }
  if (line != "\r\n" && line != "\n") {
    head_is_too_long = !head.AddLine(line);
    return !head_is_too_long;
  }
  if (head.status() < 200) return true;  // the head of the final response follows
  head_is_complete = true;
  return receiver->OnHead(head);
}

size_t HttpClient::Transfer::OnHeaderLine(char* data, size_t size, size_t count, void* self) {
  auto* transfer = static_cast<Transfer*>(self);
  return transfer->Try([&] { return transfer->TakeHeaderLine({data, size * count}); }) ? size * count : 0;
}

size_t HttpClient::Transfer::OnData(char* data, size_t size, size_t count, void* self) {
  auto* transfer = static_cast<Transfer*>(self);
  // Zero bytes would mean success to libcurl, so that a refusal of an empty piece is not possible.
  return transfer->Try([&] { return transfer->receiver->OnBody({data, size * count}); }) ? size * count : 0;
}

HttpOutcome HttpClient::Transfer::Outcome(CURLcode code) const {
  if (code == CURLE_OK && head_is_complete) return {};
  if (code == CURLE_OK) return {"no response"};
  if (head_is_too_long) {
    return {"the headers of the response are too long (limit " + std::to_string(HttpHead::kMaxBytes) + " bytes)",
            false};
  }
  std::string text = error[0] == '\0' ? curl_easy_strerror(code) : error.data();
  return {Escape(text, 300), !IsPermanent(code)};
}

HttpClient::HttpClient() {
  InitializeLibrary();
  multi_ = curl_multi_init();
  if (multi_ == nullptr) throw ResourceError("http: cannot create a group of transfers");
}

HttpClient::~HttpClient() {
  for (const std::unique_ptr<Transfer>& transfer : transfers_) curl_multi_remove_handle(multi_, transfer->easy);
  transfers_.clear();
  curl_multi_cleanup(multi_);
}

void HttpClient::Start(const HttpRequest& request, HttpReceiver* receiver) {
  auto transfer = std::make_unique<Transfer>(request, receiver);
  transfers_.reserve(transfers_.size() + 1);
  const CURLMcode code = curl_multi_add_handle(multi_, transfer->easy);
  if (code != CURLM_OK) throw ResourceError(std::string("http: cannot start a transfer: ") + curl_multi_strerror(code));
  transfers_.push_back(std::move(transfer));
}

std::unique_ptr<HttpClient::Transfer> HttpClient::Take(const void* easy) {
  const auto found = std::find_if(transfers_.begin(), transfers_.end(),
                                  [&](const std::unique_ptr<Transfer>& transfer) { return transfer->easy == easy; });
  if (found == transfers_.end()) return nullptr;
  std::unique_ptr<Transfer> transfer = std::move(*found);
  transfers_.erase(found);
  curl_multi_remove_handle(multi_, transfer->easy);
  return transfer;
}

void HttpClient::Cancel(const HttpReceiver* receiver) {
  for (size_t i = transfers_.size(); i-- > 0;) {
    if (transfers_[i]->receiver == receiver) Take(transfers_[i]->easy);
  }
}

void HttpClient::Poll(std::chrono::milliseconds limit, int wake_fd) {
  curl_waitfd wake{wake_fd, CURL_WAIT_POLLIN, 0};
  int num_running = 0;
  curl_multi_perform(multi_, &num_running);
  // A finished transfer must not wait for the next event.
  const bool is_waiting = num_running == static_cast<int>(transfers_.size());
  if (is_waiting) {
    curl_multi_poll(multi_, &wake, wake_fd >= 0 ? 1 : 0, static_cast<int>(limit.count()), nullptr);
    curl_multi_perform(multi_, &num_running);
  }
  int num_left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &num_left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    // Taken first, because OnDone may start other transfers.
    const std::unique_ptr<Transfer> transfer = Take(message->easy_handle);
    if (transfer == nullptr) continue;
    if (transfer->exception) std::rethrow_exception(transfer->exception);
    transfer->receiver->OnDone(transfer->Outcome(code));
  }
}

}  // namespace vllm::app
