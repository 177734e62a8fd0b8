#include "app/hub/api/hub_error.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"

namespace vllm::app {
namespace {

HubSubject Subject(bool has_token) {
  return {"https://huggingface.co", "a/b", "v1", "f.json", has_token, has_token ? "HF_TOKEN" : "/h/token"};
}

HttpHead Head(int status, const std::string& code, const std::string& message = "") {
  HttpHead head(status);
  if (!code.empty()) head.AddLine("X-Error-Code: " + code);
  if (!message.empty()) head.AddLine("X-Error-Message: " + message);
  return head;
}

// Returns the message and the hint of the error.
template <typename Error>
std::string TextOf(const HttpHead& head, bool has_token = false) {
  try {
    ThrowHubError(Subject(has_token), head);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
}

TEST(HubErrorTest, GatedModelNamesThePageToVisit) {
  EXPECT_EQ(TextOf<ModelError>(Head(401, "GatedRepo")),
            "model a/b: its authors require a login and their permission | visit https://huggingface.co/a/b to request "
            "access; then set HF_TOKEN to a token of your account (https://huggingface.co/settings/tokens), or write "
            "it to /h/token");
  EXPECT_EQ(TextOf<ModelError>(Head(403, "GatedRepo"), true),
            "model a/b: its authors have not granted access to the account of your token | visit "
            "https://huggingface.co/a/b and request access with the account of the token in HF_TOKEN");
}

TEST(HubErrorTest, MissingRepositoryMayBePrivate) {
  const std::string text =
      "model a/b: the hub has no such repository, or it is private | check the name at https://huggingface.co/a/b; for "
      "a private or gated repository, set HF_TOKEN or write a token to /h/token";
  EXPECT_EQ(TextOf<ModelError>(Head(401, "RepoNotFound")), text);
  EXPECT_EQ(TextOf<ModelError>(Head(404, "RepoNotFound")), text);
  EXPECT_EQ(TextOf<ModelError>(Head(401, "")), text);
}

TEST(HubErrorTest, InvalidTokenIsNamed) {
  EXPECT_EQ(TextOf<ModelError>(Head(401, "", "Invalid credentials in Authorization header"), true),
            "model a/b: the hub rejects the token in HF_TOKEN (Invalid credentials in Authorization header) | make a "
            "new token at https://huggingface.co/settings/tokens, or unset the old one");
}

TEST(HubErrorTest, MissingRevisionAndFileAreNamed) {
  EXPECT_EQ(TextOf<ModelError>(Head(404, "RevisionNotFound")),
            "model a/b: the repository has no such branch, tag or commit (v1) | ");
  EXPECT_EQ(TextOf<ModelError>(Head(404, "EntryNotFound")), "model a/b: the repository has no such file (f.json) | ");
}

TEST(HubErrorTest, RateLimitSuggestsAToken) {
  EXPECT_EQ(TextOf<RequestError>(Head(429, "", "too many\x1b[2J")),
            "model a/b: the hub limits the rate of requests, HTTP status 429 (too many\\x1b[2J) | try again later, or "
            "set HF_TOKEN for higher limits; the same command continues the download");
}

TEST(HubErrorTest, HintOfANetworkErrorSaysWhetherToTryAgain) {
  for (const bool is_temporary : {false, true}) {
    try {
      ThrowNetworkError(Subject(false), "connection refused", is_temporary);
    } catch (const RequestError& error) {
      EXPECT_STREQ(error.what(), "model a/b: cannot download f.json: connection refused");
      EXPECT_EQ(error.hint() == "the same command continues the download", is_temporary);
    }
  }
}

TEST(HubErrorTest, OtherStatusesAreRequestErrors) {
  EXPECT_EQ(TextOf<RequestError>(Head(503, "")),
            "model a/b: the server answered with HTTP status 503 | the same command continues the download");
  EXPECT_EQ(TextOf<ModelError>(Head(403, "", "Access to this resource is disabled.")),
            "model a/b: the hub denies access (Access to this resource is disabled.) | visit "
            "https://huggingface.co/a/b");
}

}  // namespace
}  // namespace vllm::app
