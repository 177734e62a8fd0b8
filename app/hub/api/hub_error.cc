#include "app/hub/api/hub_error.h"

#include "engine/config/errors.h"
#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr char kContinues[] = "the same command continues the download";

std::string PageOf(const HubSubject& subject) { return subject.endpoint + "/" + subject.repo_id; }

// Returns what the hub says about the status, in parentheses.
std::string Remark(const HttpHead& head) {
  const std::string message = head.Value("x-error-message");
  return message.empty() ? "" : " (" + Escape(message, 300) + ")";
}

[[noreturn]] void ThrowGated(const HubSubject& subject, const std::string& name) {
  if (subject.has_token) {
    throw ModelError(name + ": its authors have not granted access to the account of your token",
                     "visit " + PageOf(subject) + " and request access with the account of the token in " +
                         Escape(subject.token_source));
  }
  throw ModelError(name + ": its authors require a login and their permission",
                   "visit " + PageOf(subject) + " to request access; then set HF_TOKEN to a token of your account (" +
                       subject.endpoint + "/settings/tokens), or write it to " + Escape(subject.token_source));
}

[[noreturn]] void ThrowMissingRepository(const HubSubject& subject, const std::string& name) {
  if (subject.has_token) {
    throw ModelError(name + ": the hub has no such repository, or the account of your token may not read it",
                     "check the name at " + PageOf(subject));
  }
  throw ModelError(name + ": the hub has no such repository, or it is private",
                   "check the name at " + PageOf(subject) +
                       "; for a private or gated repository, set HF_TOKEN or write a token to " +
                       Escape(subject.token_source));
}

}  // namespace

void ThrowHubError(const HubSubject& subject, const HttpHead& head) {
  const std::string name = "model " + Escape(subject.repo_id);
  const std::string code = head.Value("x-error-code");
  const std::string message = head.Value("x-error-message");
  const int status = head.status();
  if (status == 401 && subject.has_token && message.find("nvalid") != std::string::npos) {
    throw ModelError(name + ": the hub rejects the token in " + Escape(subject.token_source) + Remark(head),
                     "make a new token at " + subject.endpoint + "/settings/tokens, or unset the old one");
  }
  if (code == "GatedRepo") ThrowGated(subject, name);
  if (code == "RevisionNotFound") {
    throw ModelError(name + ": the repository has no such branch, tag or commit (" +
                     Escape(subject.revision.empty() ? "main" : subject.revision) + ")");
  }
  if (code == "EntryNotFound") {
    throw ModelError(name + ": the repository has no such file (" + Escape(subject.path) + ")");
  }
  if (code == "RepoNotFound" || status == 401) ThrowMissingRepository(subject, name);
  if (status == 403) {
    throw ModelError(name + ": the hub denies access" + Remark(head), "visit " + PageOf(subject));
  }
  if (status == 404 || status == 410 || status == 451) {
    const std::string object = subject.path.empty() ? "repository" : "file " + Escape(subject.path);
    throw ModelError(
        name + ": the hub does not have this " + object + ", HTTP status " + std::to_string(status) + Remark(head),
        "check the name at " + PageOf(subject));
  }
  if (status == 429) {
    throw RequestError(name + ": the hub limits the rate of requests, HTTP status 429" + Remark(head),
                       std::string("try again later") +
                           (subject.has_token ? "" : ", or set HF_TOKEN for higher limits") + "; " + kContinues);
  }
  throw RequestError(name + ": the server answered with HTTP status " + std::to_string(status) + Remark(head),
                     kContinues);
}

void ThrowNetworkError(const HubSubject& subject, const std::string& why, bool is_temporary) {
  const std::string object = subject.path.empty() ? "" : ": cannot download " + Escape(subject.path);
  throw RequestError("model " + Escape(subject.repo_id) + object + ": " + why,
                     is_temporary
                         ? kContinues
                         : "check HF_ENDPOINT, the variables of your proxy and its certificate: CURL_CA_BUNDLE "
                           "can name a file with other authorities");
}

}  // namespace vllm::app
