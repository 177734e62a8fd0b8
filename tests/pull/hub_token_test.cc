#include "app/hub/api/hub_token.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "tests/pull/environment.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

class HubTokenTest : public testing::Test {
 protected:
  TempDirectory home_;
  ScopedVariable hf_home_{"HF_HOME", home_.path().c_str()};
  ScopedVariable path_{"HF_TOKEN_PATH", nullptr};
  ScopedVariable token_{"HF_TOKEN", nullptr};
  ScopedVariable old_token_{"HUGGING_FACE_HUB_TOKEN", nullptr};
  ScopedVariable disabled_{"HF_HUB_DISABLE_IMPLICIT_TOKEN", nullptr};
};

TEST_F(HubTokenTest, VariablesPrecedeTheFile) {
  EXPECT_FALSE(FindHubToken());
  home_.Write("token", " from-file\n");
  EXPECT_EQ(FindHubToken()->value, "from-file");
  EXPECT_EQ(FindHubToken()->source, home_.path() + "/token");
  const ScopedVariable old_token("HUGGING_FACE_HUB_TOKEN", "old");
  EXPECT_EQ(FindHubToken()->value, "old");
  const ScopedVariable token("HF_TOKEN", "new\n");
  EXPECT_EQ(FindHubToken()->value, "new");
  EXPECT_EQ(FindHubToken()->source, "HF_TOKEN");
}

TEST_F(HubTokenTest, EmptyVariableIsNoToken) {
  const ScopedVariable token("HF_TOKEN", "  ");
  EXPECT_FALSE(FindHubToken());
}

TEST_F(HubTokenTest, TokenPathNamesAnotherFile) {
  const std::string file = home_.Write("other", "x");
  const ScopedVariable path("HF_TOKEN_PATH", file.c_str());
  EXPECT_EQ(FindHubToken()->value, "x");
}

TEST_F(HubTokenTest, TokenIsNotUsedIfDisabled) {
  const ScopedVariable token("HF_TOKEN", "x");
  const ScopedVariable disabled("HF_HUB_DISABLE_IMPLICIT_TOKEN", "Yes");
  EXPECT_FALSE(FindHubToken());
}

TEST_F(HubTokenTest, TokenThatWouldStartAnotherHeaderIsRejectedWithoutPrintingIt) {
  const ScopedVariable token("HF_TOKEN", "a\r\nX-Header: b");
  EXPECT_EQ(MessageOf<ConfigError>([] { FindHubToken(); }),
            "hub token in HF_TOKEN: must be one word of ASCII characters");
}

}  // namespace
}  // namespace vllm::app
