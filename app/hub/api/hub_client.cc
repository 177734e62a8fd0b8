#include "app/hub/api/hub_client.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "app/http/retry_policy.h"
#include "app/http/url.h"
#include "app/hub/hub_endpoint.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr int64_t kMaxCommitBytes = int64_t{32} << 20;  // the answer also lists all files
constexpr int64_t kMaxPageBytes = int64_t{8} << 20;
constexpr int kMaxPages = 200;
constexpr int kMaxRedirects = 5;
// So long that a page of a slow hub arrives, and so short that a server that sends a byte now and then is given up.
constexpr std::chrono::seconds kMetadataLimit{120};

std::chrono::seconds TimeoutVariable(const char* variable) {
  constexpr int64_t kDefault = 10;
  constexpr int64_t kMax = 3600;
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::chrono::seconds(kDefault);
  const std::optional<int64_t> seconds = ParseDecimal(value);
  if (!seconds || *seconds < 1 || *seconds > kMax) {
    throw ConfigError(std::string(variable) + ": must be an integer from 1 to 3600 (" + Escape(value) + ")");
  }
  return std::chrono::seconds(*seconds);
}

std::string WaitText(std::chrono::milliseconds wait) {
  return std::to_string(std::max<int64_t>(1, (wait.count() + 999) / 1000)) + " s";
}

}  // namespace

struct HubClient::Response {
  HttpHead head;
  std::string body;
  HttpOutcome outcome;
  bool is_too_long = false;
};

// Collects one response.
class HubClient::Receiver : public HttpReceiver {
 public:
  explicit Receiver(int64_t max_bytes) : max_bytes_(max_bytes) {}

  bool OnHead(const HttpHead& head) override {
    response_.head = head;
    return true;
  }
  bool OnBody(std::string_view bytes) override {
    if (response_.head.status() != 200) {
      // The body of an error or a redirect is not used, but reading a short one keeps the connection open.
      num_ignored_ += bytes.size();
      return num_ignored_ <= HttpHead::kMaxBytes;
    }
    response_.is_too_long = static_cast<int64_t>(response_.body.size() + bytes.size()) > max_bytes_;
    if (!response_.is_too_long) response_.body += bytes;
    return !response_.is_too_long;
  }
  void OnDone(const HttpOutcome& outcome) override {
    response_.outcome = num_ignored_ > HttpHead::kMaxBytes ? HttpOutcome{} : outcome;
    is_done_ = true;
  }

  bool is_done() const { return is_done_; }
  Response Take() { return std::move(response_); }

 private:
  int64_t max_bytes_;
  size_t num_ignored_ = 0;
  Response response_;
  bool is_done_ = false;
};

HubClient::HubClient(HttpClient& http, std::function<void(const std::string&)> note)
    : http_(http),
      note_(std::move(note)),
      endpoint_(HubEndpoint()),
      token_(FindHubToken()),
      metadata_timeout_(TimeoutVariable("HF_HUB_ETAG_TIMEOUT")),
      download_timeout_(TimeoutVariable("HF_HUB_DOWNLOAD_TIMEOUT")) {
  const std::optional<UrlOrigin> origin = OriginOf(endpoint_);
  if (!origin) throw ConfigError("HF_ENDPOINT: not a valid URL (" + Escape(endpoint_) + ")");
  sends_token_ = token_ && (origin->is_https() || origin->is_loopback());
}

std::string HubClient::FileUrl(const std::string& repo_id, const std::string& commit, const std::string& path) const {
  return endpoint_ + "/" + repo_id + "/resolve/" + PercentEncoded(commit) + "/" + PercentEncodedPath(path);
}

bool HubClient::IsOnHub(const std::string& url) const {
  const std::optional<UrlOrigin> origin = OriginOf(url);
  return origin && origin == OriginOf(endpoint_);
}

std::vector<std::string> HubClient::HeadersFor(const std::string& url) const {
  // A compressed body would have another length and other ranges.
  std::vector<std::string> headers = {"Accept-Encoding: identity"};
  if (sends_token_ && IsOnHub(url)) headers.push_back("Authorization: Bearer " + token_->value);
  return headers;
}

HubSubject HubClient::Subject(const std::string& repo_id, const std::string& revision, const std::string& path) const {
  return {endpoint_, repo_id, revision, path, sends_token_, token_ ? token_->source : HubTokenPath()};
}

HubClient::Response HubClient::GetOnce(const std::string& url, int64_t max_bytes) {
  HttpRequest request;
  request.url = url;
  request.headers = HeadersFor(url);
  request.idle_timeout = metadata_timeout_;
  request.total_timeout = std::max(kMetadataLimit, metadata_timeout_);
  Receiver receiver(max_bytes);
  http_.Start(request, &receiver);
  try {
    while (!receiver.is_done()) {
      http_.Poll(std::chrono::milliseconds(1000), SignalFd());
      ThrowIfInterrupted();
    }
  } catch (...) {
    http_.Cancel(&receiver);
    throw;
  }
  return receiver.Take();
}

HubClient::Response HubClient::Get(const std::string& url, int64_t max_bytes, const HubSubject& subject,
                                   bool may_leave_hub) {
  std::string target = url;
  RetryPolicy retry;
  for (int num_redirects = 0;;) {
    Response response = GetOnce(target, max_bytes);
    if (response.is_too_long) {
      throw ModelError("model " + Escape(subject.repo_id) + ": the hub's answer is too long (limit " +
                       std::to_string(max_bytes) + " bytes)");
    }
    const HttpHead& head = response.head;
    const bool is_complete = response.outcome.error.empty();
    if (is_complete && head.status() == 200) return response;
    if (is_complete && head.is_redirect()) {
      const std::optional<std::string> next = RedirectTarget(target, head.Value("location"));
      if (!next || ++num_redirects > kMaxRedirects || (!may_leave_hub && !IsOnHub(*next))) {
        const std::string location = Escape(head.Value("location"));
        ThrowNetworkError(subject, "the hub redirects to an invalid address, or too often (" + location + ")", false);
      }
      target = *next;
      continue;
    }
    if (is_complete && !head.is_temporary_failure()) ThrowHubError(subject, head);
    const bool may_retry = is_complete || response.outcome.is_temporary;
    const auto now = RetryPolicy::Clock::now();
    if (!may_retry || !retry.NoteFailure(is_complete ? &head : nullptr, now)) {
      if (is_complete) ThrowHubError(subject, head);
      ThrowNetworkError(subject, "cannot reach " + endpoint_ + ": " + response.outcome.error, may_retry);
    }
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(retry.retry_at() - now);
    note_(
        (is_complete ? "the hub answered with HTTP status " + std::to_string(head.status()) : response.outcome.error) +
        "; trying again in " + WaitText(wait));
    while (RetryPolicy::Clock::now() < retry.retry_at()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(retry.retry_at() - RetryPolicy::Clock::now());
      pollfd signal{SignalFd(), POLLIN, 0};
      poll(&signal, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
      ThrowIfInterrupted();
    }
  }
}

std::string HubClient::FindCommit(const std::string& repo_id, const std::string& revision) {
  const std::string name = revision.empty() ? "main" : revision;
  const std::string url = endpoint_ + "/api/models/" + repo_id + "/revision/" + PercentEncoded(name);
  return ParseCommit(Get(url, kMaxCommitBytes, Subject(repo_id, name, ""), false).body, repo_id);
}

std::vector<HubFile> HubClient::ListFiles(const std::string& repo_id, const std::string& commit) {
  std::vector<HubFile> files;
  const HubSubject subject = Subject(repo_id, commit, "");
  const std::string tree = endpoint_ + "/api/models/" + repo_id + "/tree/" + commit;
  std::string url = tree + "?recursive=true";
  for (int page = 0; page < kMaxPages; ++page) {
    const Response response = Get(url, kMaxPageBytes, subject, false);
    ParseTree(response.body, repo_id, files);
    const std::string next = NextLink(response.head.Value("link"));
    if (next.empty()) return files;
    // Only the query of the address is used: some mirrors name the host of the original hub.
    const size_t query = next.find('?');
    const std::optional<std::string> target =
        query == std::string::npos ? std::nullopt : RedirectTarget(tree, next.substr(query));
    if (!target) {
      throw ModelError("model " + Escape(repo_id) + ": the next page of the list of files has an invalid address (" +
                       Escape(next) + ")");
    }
    url = *target;
  }
  throw ModelError("model " + Escape(repo_id) + ": the list of files has too many pages (limit " +
                   std::to_string(kMaxPages) + ")");
}

std::string HubClient::ReadFile(const std::string& repo_id, const std::string& commit, const std::string& path,
                                int64_t max_bytes) {
  return Get(FileUrl(repo_id, commit, path), max_bytes, Subject(repo_id, commit, path), true).body;
}

}  // namespace vllm::app
