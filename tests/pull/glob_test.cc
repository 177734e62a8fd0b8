#include "app/hub/pull/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace vllm::app {
namespace {

TEST(GlobTest, StarMatchesSlashesToo) {
  EXPECT_TRUE(GlobMatches("*.json", "config.json"));
  EXPECT_TRUE(GlobMatches("*.json", "a/b/config.json"));
  EXPECT_TRUE(GlobMatches("model-*-of-*.safetensors", "model-00001-of-00002.safetensors"));
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_FALSE(GlobMatches("*.json", "config.json5"));
  EXPECT_FALSE(GlobMatches("", "a"));
}

TEST(GlobTest, DirectoryMatchesItsFiles) {
  EXPECT_TRUE(GlobMatches("onnx/", "onnx/model.onnx"));
  EXPECT_FALSE(GlobMatches("onnx/", "x/onnx/model.onnx"));
}

TEST(GlobTest, SetsMatchOneByte) {
  EXPECT_TRUE(GlobMatches("m-[0-3].x", "m-2.x"));
  EXPECT_FALSE(GlobMatches("m-[0-3].x", "m-4.x"));
  EXPECT_TRUE(GlobMatches("m-[!0-3].x", "m-4.x"));
  EXPECT_TRUE(GlobMatches("[]a]", "]"));
  EXPECT_TRUE(GlobMatches("[a-]", "-"));
  EXPECT_TRUE(GlobMatches("[a", "[a"));
  EXPECT_TRUE(GlobMatches("?b", "ab"));
  EXPECT_FALSE(GlobMatches("?", ""));
}

TEST(GlobTest, ManyStarsTakeNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(GlobMatches(pattern + "b", std::string(1000, 'a')));
}

}  // namespace
}  // namespace vllm::app
