// Tests which links may be sent to a terminal, and how their targets are shown.
#include "app/terminal/link_uri.h"

#include <gtest/gtest.h>

#include <string>

namespace vllm::app {
namespace {

std::string HostOf(const std::string& url) {
  const auto uri = LinkUri::Parse(url);
  return uri ? uri->host() : "none";
}

TEST(LinkUriTest, WebAndMailLinksAreAllowed) {
  EXPECT_EQ(HostOf("https://example.com/a?b#c"), "example.com");
  EXPECT_EQ(HostOf("http://Example.COM:8080"), "example.com");
  EXPECT_EQ(HostOf("mailto:somebody@example.org?subject=x"), "example.org");
}

TEST(LinkUriTest, OtherSchemesAreRejected) {
  for (const char* url :
       {"javascript:alert(1)", "file:///etc/passwd", "ssh://host", "x-man-page://ls", "data:text/html,x",
        "//example.com", "example.com", "https:example.com", "http://", "mailto:nobody", ""}) {
    EXPECT_EQ(HostOf(url), "none") << url;
  }
}

TEST(LinkUriTest, TheHostIsTheOneThatABrowserOpens) {
  EXPECT_EQ(HostOf("https://google.com@attacker.example/"), "attacker.example");
  EXPECT_EQ(HostOf("https://a@b@attacker.example:80/@good"), "attacker.example");
  EXPECT_EQ(HostOf("https://attacker.example?@google.com"), "attacker.example");
  EXPECT_EQ(HostOf("http://[::1]:80/x"), "[::1]");
}

TEST(LinkUriTest, BackslashesAndControlCharactersAreRejected) {
  EXPECT_EQ(HostOf("https://google.com\\@attacker.example"), "none");
  EXPECT_EQ(HostOf("https://a b.example"), "none");
  EXPECT_EQ(HostOf("https://a.example/\x1b]52;c;aGk=\x07"), "none");
  EXPECT_EQ(HostOf("https://a.example/\x7f"), "none");
}

TEST(LinkUriTest, BytesThatAreNotAsciiArePercentEncoded) {
  EXPECT_EQ(LinkUri::Parse("https://a.example/\u00e9\x9d")->text(), "https://a.example/%C3%A9%9D");
}

TEST(LinkUriTest, LongTargetsAreRejected) {
  EXPECT_TRUE(LinkUri::Parse("https://a.example/" + std::string(1900, 'x')));
  EXPECT_FALSE(LinkUri::Parse("https://a.example/" + std::string(2000, 'x')));
  EXPECT_FALSE(LinkUri::Parse("https://a.example/" + std::string(999, '\xc3')));
}

// The examples are from RFC 3492, section 7.1, and the registry of test domains of IANA.
TEST(LinkUriTest, HostsOfOtherScriptsAreShownInPunycode) {
  EXPECT_EQ(PunycodeLabel("plain"), "plain");
  EXPECT_EQ(PunycodeLabel("b\u00fccher"), "xn--bcher-kva");
  EXPECT_EQ(PunycodeLabel("\u6d4b\u8bd5"), "xn--0zwm56d");
  EXPECT_EQ(PunycodeLabel("\u4ed6\u4eec\u4e3a\u4ec0\u4e48\u4e0d\u8bf4\u4e2d\u6587"), "xn--ihqwcrb4cv8a8dqg056pqjye");
  // The first letter is Cyrillic.
  EXPECT_EQ(HostOf("https://\u0430pple.com/"), "xn--pple-43d.com");
}

}  // namespace
}  // namespace vllm::app
