#include "app/http/url.h"

#include <gtest/gtest.h>

#include <string>

namespace vllm::app {
namespace {

TEST(UrlTest, OriginHasTheDefaultPort) {
  EXPECT_EQ(OriginOf("https://HuggingFace.co/a/b"), (UrlOrigin{"https", "huggingface.co", "443"}));
  EXPECT_EQ(OriginOf("http://localhost:8080/"), (UrlOrigin{"http", "localhost", "8080"}));
}

TEST(UrlTest, UrlsOfOtherSchemesAndWithUsersHaveNoOrigin) {
  for (const char* url : {"file:///etc/passwd", "ftp://a/b", "https://huggingface.co@other.example/", "https://u:p@a/",
                          "huggingface.co/a", "", "https://", "http://a:99999999/"}) {
    EXPECT_EQ(OriginOf(url), std::nullopt) << url;
  }
}

TEST(UrlTest, OnlyAddressesOfThisMachineAreLoopback) {
  for (const char* url : {"http://127.0.0.1:1/", "http://127.8.9.1/", "http://localhost/", "http://[::1]/"}) {
    EXPECT_TRUE(OriginOf(url)->is_loopback()) << url;
  }
  for (const char* url : {"http://127.example.org/", "http://10.0.0.1/", "http://localhost.example.org/"}) {
    EXPECT_FALSE(OriginOf(url)->is_loopback()) << url;
  }
}

TEST(UrlTest, RedirectsAreResolvedAgainstTheirBase) {
  EXPECT_EQ(RedirectTarget("https://a/x/y?z", "/b"), "https://a/b");
  EXPECT_EQ(RedirectTarget("https://a/x/y", "../b?c=d"), "https://a/b?c=d");
  EXPECT_EQ(RedirectTarget("https://a/x", "https://cdn.example/b?sig=1#f"), "https://cdn.example/b?sig=1");
  EXPECT_EQ(RedirectTarget("http://a/x", "https://a/x"), "https://a/x");
}

TEST(UrlTest, SignedAddressesStayTheSame) {
  // Another spelling of the same URL would have another signature.
  const std::string address =
      "https://cdn.example/repos/a1/x%2Fy%2fz/0f?X-Amz-Credential=cas%2F2025%2fs3&response-content-disposition="
      "inline%3B+filename*%3DUTF-8%27%27m.gguf%3B+filename%3D%22m.gguf%22%3B&Policy=eyJT_~-&Signature=AB~c+d/e==";
  EXPECT_EQ(RedirectTarget("https://huggingface.co/a/b/resolve/main/m.gguf", address), address);
}

TEST(UrlTest, RedirectsToOtherSchemesAreRejected) {
  for (const char* location : {"http://a/x", "file:///etc/passwd", "ftp://a/x", "https://u:p@a/x", "https://a b/"}) {
    EXPECT_EQ(RedirectTarget("https://a/x", location), std::nullopt) << location;
  }
}

TEST(UrlTest, PathsAreEncodedBySegment) {
  EXPECT_EQ(PercentEncoded("refs/pr/1"), "refs%2Fpr%2F1");
  EXPECT_EQ(PercentEncodedPath("a b/c#d?e%/\xc3\xa9"), "a%20b/c%23d%3Fe%25/%C3%A9");
}

}  // namespace
}  // namespace vllm::app
