// Explains the hub's refusals. Pure functions; any thread.
#pragma once

#include <string>

#include "app/http/http_head.h"

namespace vllm::app {

// What was requested, for messages.
struct HubSubject {
  std::string endpoint;
  std::string repo_id;
  std::string revision;      // empty: main
  std::string path;          // the file; empty: the repository itself
  bool has_token = false;    // a token was sent
  std::string token_source;  // the variable or file of the token, or the file in which to put one
};

// Throws the error for a response whose status is neither a success nor a redirect: ModelError if the model does not
// exist or the user may not read it, with a hint that names the page to visit; RequestError for other statuses.
[[noreturn]] void ThrowHubError(const HubSubject& subject, const HttpHead& head);

// Throws RequestError for a connection that failed. `is_temporary`: the same command may succeed later.
[[noreturn]] void ThrowNetworkError(const HubSubject& subject, const std::string& why, bool is_temporary);

}  // namespace vllm::app
