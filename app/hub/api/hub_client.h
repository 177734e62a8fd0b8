// HubClient: asks the hub about repositories. Repeats requests that fail temporarily, follows redirects on the hub's
// own host, and sends the token to no other host. Borrows the HttpClient. Blocks the calling thread, but a signal ends
// the wait; main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/http/http_client.h"
#include "app/hub/api/hub_error.h"
#include "app/hub/api/hub_listing.h"
#include "app/hub/api/hub_token.h"

namespace vllm::app {

class HubClient {
 public:
  // `note` receives a line about each wait before another attempt. Reads HF_ENDPOINT, the token, HF_HUB_ETAG_TIMEOUT
  // and HF_HUB_DOWNLOAD_TIMEOUT. Throws ConfigError.
  HubClient(HttpClient& http, std::function<void(const std::string&)> note);

  // The methods throw ModelError, RequestError or Interrupted.

  // Returns the commit of a branch, tag or commit. An empty revision is main.
  std::string FindCommit(const std::string& repo_id, const std::string& revision);
  // Returns the files of a commit, in the hub's order.
  std::vector<HubFile> ListFiles(const std::string& repo_id, const std::string& commit);
  // Returns the contents of a small file. Throws ModelError if it has more than `max_bytes`.
  std::string ReadFile(const std::string& repo_id, const std::string& commit, const std::string& path,
                       int64_t max_bytes);

  // Returns the hub's URL of a file.
  std::string FileUrl(const std::string& repo_id, const std::string& commit, const std::string& path) const;
  // Returns the headers for a request to `url`: the token, if this is the hub's host.
  std::vector<std::string> HeadersFor(const std::string& url) const;
  // Returns true if `url` is on the hub's host.
  bool IsOnHub(const std::string& url) const;
  // Returns the subject of error messages about a file or, with an empty path, a repository.
  HubSubject Subject(const std::string& repo_id, const std::string& revision, const std::string& path) const;

  // Returns true if the user has a token that is not sent, because the endpoint is neither https nor this machine.
  bool withholds_token() const { return token_ && !sends_token_; }
  HttpClient& http() const { return http_; }
  const std::string& endpoint() const { return endpoint_; }
  std::chrono::seconds metadata_timeout() const { return metadata_timeout_; }
  std::chrono::seconds download_timeout() const { return download_timeout_; }
  void Note(const std::string& text) const { note_(text); }

 private:
  struct Response;
  class Receiver;

  Response Get(const std::string& url, int64_t max_bytes, const HubSubject& subject, bool may_leave_hub);
  Response GetOnce(const std::string& url, int64_t max_bytes);

  HttpClient& http_;
  std::function<void(const std::string&)> note_;
  std::string endpoint_;
  std::optional<HubToken> token_;
  bool sends_token_ = false;
  std::chrono::seconds metadata_timeout_;
  std::chrono::seconds download_timeout_;
};

}  // namespace vllm::app
