#include "app/hub/model_reference.h"

#include <gtest/gtest.h>

#include "tests/pull/environment.h"

namespace vllm::app {
namespace {

ModelReference Reference(const char* repo_id, const char* tag = "", const char* revision = "") {
  return {repo_id, tag, revision};
}

TEST(ModelReferenceTest, NamesMayHaveATag) {
  EXPECT_EQ(ParseModelReference("gpt2"), Reference("gpt2"));
  EXPECT_EQ(ParseModelReference("Qwen/Qwen3-0.6B"), Reference("Qwen/Qwen3-0.6B"));
  EXPECT_EQ(ParseModelReference("Qwen/Qwen3-0.6B-GGUF:Q8_0"), Reference("Qwen/Qwen3-0.6B-GGUF", "Q8_0"));
  EXPECT_EQ(ParseModelReference("unsloth/x-GGUF:UD-Q4_K_XL"), Reference("unsloth/x-GGUF", "UD-Q4_K_XL"));
}

TEST(ModelReferenceTest, TagMayBeTheFile) {
  EXPECT_EQ(ParseModelReference("a/b/c-Q4_0.gguf"), Reference("a/b", "c-Q4_0.gguf"));
  EXPECT_EQ(ParseModelReference("a/b/sub/c.gguf"), Reference("a/b", "sub/c.gguf"));
  EXPECT_EQ(ParseModelReference("a/b:sub/c.gguf"), Reference("a/b", "sub/c.gguf"));
}

TEST(ModelReferenceTest, HostsOfTheHubAreUnderstood) {
  for (const char* prefix : {"hf.co/", "huggingface.co/", "https://hf.co/", "https://huggingface.co/", "HTTPS://HF.co/",
                             "http://www.huggingface.co/"}) {
    EXPECT_EQ(ParseModelReference(std::string(prefix) + "a/b:Q4_0"), Reference("a/b", "Q4_0")) << prefix;
    EXPECT_EQ(ParseModelReference(std::string(prefix) + "a/b/"), Reference("a/b")) << prefix;
  }
  EXPECT_EQ(ParseModelReference("https://huggingface.co/a/b?library=x#y"), Reference("a/b"));
}

TEST(ModelReferenceTest, EndpointCountsAsTheHub) {
  const ScopedVariable endpoint("HF_ENDPOINT", "http://127.0.0.1:4711/hf/");
  EXPECT_EQ(ParseModelReference("http://127.0.0.1:4711/hf/a/b"), Reference("a/b"));
  EXPECT_EQ(ParseModelReference("https://huggingface.co/a/b"), Reference("a/b"));
  EXPECT_EQ(ParseModelReference("http://127.0.0.1:4712/hf/a/b"), std::nullopt);
}

TEST(ModelReferenceTest, PagesOfTheHubNameRevisionAndFile) {
  const std::string base = "https://huggingface.co/a/b/";
  EXPECT_EQ(ParseModelReference(base + "tree/v1.0"), Reference("a/b", "", "v1.0"));
  EXPECT_EQ(ParseModelReference(base + "tree/main/sub"), Reference("a/b", "", "main"));
  EXPECT_EQ(ParseModelReference(base + "tree/refs%2Fpr%2F1"), Reference("a/b", "", "refs/pr/1"));
  EXPECT_EQ(ParseModelReference(base + "blob/refs/pr/1/c.gguf"), Reference("a/b", "c.gguf", "refs/pr/1"));
  EXPECT_EQ(ParseModelReference(base + "blob/main/c.gguf"), Reference("a/b", "c.gguf", "main"));
  EXPECT_EQ(ParseModelReference(base + "resolve/main/s%20t/c.gguf?download=true"),
            Reference("a/b", "s t/c.gguf", "main"));
}

TEST(ModelReferenceTest, OtherTextIsNoReference) {
  for (const char* text : {"",
                           "./model",
                           "/a/b",
                           "../x",
                           "a/b/c",
                           "a//b",
                           "a/b:",
                           "a/b:c d",
                           "a/b:../x.gguf",
                           "-a/b",
                           "a--b/c",
                           "a/b.",
                           "model.gguf",
                           "models/x.gguf",
                           "https://example.org/a/b",
                           "https://huggingface.co/",
                           "https://huggingface.co",
                           "file:///a/b",
                           "https://huggingface.co/a/b/blob/main/README.md",
                           "https://huggingface.co/a/b/blob/main/../x.gguf",
                           "https://huggingface.co/a/b/tree/..%2F..",
                           "https://huggingface.co/a/b/resolve/main/%2e%2e/x.gguf",
                           "a/b\nc",
                           "a b/c",
                           "https://huggingface.co@other.example/a/b"}) {
    EXPECT_EQ(ParseModelReference(text), std::nullopt) << text;
  }
}

TEST(ModelReferenceTest, LongTextIsNoReference) {
  EXPECT_EQ(ParseModelReference(std::string(97, 'a') + "/b"), std::nullopt);
  EXPECT_EQ(ParseModelReference("a/b:" + std::string(97, 'a')), std::nullopt);
  EXPECT_EQ(ParseModelReference(std::string(1 << 20, '/')), std::nullopt);
}

TEST(ModelReferenceTest, CanonicalTextIsUnderstood) {
  for (const char* text : {"gpt2", "a/b", "a/b:Q4_K_M", "a/b:sub/c.gguf"}) {
    EXPECT_EQ(ToString(*ParseModelReference(text)), text);
  }
}

}  // namespace
}  // namespace vllm::app
