#include "app/http/http_head.h"

#include <gtest/gtest.h>

#include <string>

namespace vllm::app {
namespace {

using std::chrono::seconds;

HttpHead HeadWith(int status, std::initializer_list<const char*> lines) {
  HttpHead head(status);
  for (const char* line : lines) EXPECT_TRUE(head.AddLine(line));
  return head;
}

TEST(HttpHeadTest, NamesMatchInAnyLetterCase) {
  const HttpHead head = HeadWith(200, {"X-Linked-ETag:  \"abc\" \r\n", "no colon\r\n", "Empty:\r\n"});
  EXPECT_EQ(head.Value("x-linked-etag"), "\"abc\"");
  EXPECT_EQ(*head.Find("EMPTY"), "");
  EXPECT_EQ(head.Find("no colon"), nullptr);
}

TEST(HttpHeadTest, HeadersAreBounded) {
  HttpHead head(200);
  EXPECT_TRUE(head.AddLine("a: " + std::string(HttpHead::kMaxBytes - 3, 'x')));
  EXPECT_FALSE(head.AddLine("b"));
}

TEST(HttpHeadTest, TemporaryFailuresAreThoseOfTheServer) {
  for (const int status : {408, 429, 500, 502, 503, 504}) EXPECT_TRUE(HttpHead(status).is_temporary_failure());
  for (const int status : {200, 302, 400, 401, 403, 404, 416}) EXPECT_FALSE(HttpHead(status).is_temporary_failure());
}

TEST(HttpHeadTest, StatusLinesHaveAThreeDigitCode) {
  EXPECT_EQ(ParseStatusLine("HTTP/1.1 206 Partial Content\r\n"), 206);
  EXPECT_EQ(ParseStatusLine("HTTP/2 404\r\n"), 404);
  for (const char* line : {"HTTP/1.1\r\n", "HTTP/1.1 2x6 OK", "HTTP/1.1 99 OK", "Status: 200", ""}) {
    EXPECT_EQ(ParseStatusLine(line), std::nullopt) << line;
  }
}

TEST(HttpHeadTest, DecimalsHaveNoSign) {
  EXPECT_EQ(ParseDecimal("0"), 0);
  EXPECT_EQ(ParseDecimal("123456789012345678"), 123456789012345678);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "1234567890123456789"}) {
    EXPECT_EQ(ParseDecimal(text), std::nullopt) << text;
  }
}

TEST(HttpHeadTest, NextLinkIsFoundAmongOthers) {
  EXPECT_EQ(NextLink("<https://a/?p=1>; rel=\"prev\", <https://a/?p=3&q=>; rel=\"next\""), "https://a/?p=3&q=");
  EXPECT_EQ(NextLink("<https://a/>; rel=next"), "https://a/");
  for (const char* link : {"", "<https://a/>", "<https://a/>; rel=\"last\"", "<https://a", "rel=\"next\"", ">;<"}) {
    EXPECT_EQ(NextLink(link), "") << link;
  }
}

TEST(HttpHeadTest, EtagsLoseTheirQuotes) {
  EXPECT_EQ(BareEtag("W/\"abc\""), "abc");
  EXPECT_EQ(BareEtag("\"abc\""), "abc");
  EXPECT_EQ(BareEtag("abc"), "abc");
  EXPECT_EQ(BareEtag("\""), "\"");
}

TEST(HttpHeadTest, ContentRangesHaveAnExclusiveEnd) {
  EXPECT_EQ(ParseContentRange("bytes 0-99/1234"), (ContentRange{0, 100, 1234}));
  EXPECT_EQ(ParseContentRange("bytes 5-5/*"), (ContentRange{5, 6, -1}));
}

TEST(HttpHeadTest, InvalidContentRangesAreRejected) {
  for (const char* text : {"", "bytes */1234", "bytes 9-5/10", "bytes 0-10/10", "bytes 0-9", "items 0-9/10",
                           "bytes -5/10", "bytes 0-99999999999999999999/*"}) {
    EXPECT_EQ(ParseContentRange(text), std::nullopt) << text;
  }
}

TEST(HttpHeadTest, WaitIsReadFromRetryAfterFirst) {
  const auto now = std::chrono::system_clock::from_time_t(1'000'000'000);  // Sun, 09 Sep 2001 01:46:40 GMT
  EXPECT_EQ(RequestedWait(HeadWith(429, {"RateLimit: \"api\";r=0;t=7", "Retry-After: 3"}), now), seconds(3));
  EXPECT_EQ(RequestedWait(HeadWith(503, {"Retry-After: Sun, 09 Sep 2001 01:47:00 GMT"}), now), seconds(20));
  EXPECT_EQ(RequestedWait(HeadWith(503, {"Retry-After: Sun, 09 Sep 2001 01:46:00 GMT"}), now), seconds(0));
}

TEST(HttpHeadTest, WaitIsReadFromRateLimits) {
  const auto now = std::chrono::system_clock::from_time_t(0);
  EXPECT_EQ(RequestedWait(HeadWith(429, {"RateLimit: \"resolvers\"; r=0; t=42"}), now), seconds(42));
  EXPECT_EQ(RequestedWait(HeadWith(429, {"RateLimit-Reset: 9"}), now), seconds(9));
  EXPECT_EQ(RequestedWait(HeadWith(429, {"RateLimit: \"api\";r=0", "Retry-After: soon"}), now), std::nullopt);
}

}  // namespace
}  // namespace vllm::app
