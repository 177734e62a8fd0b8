#include "app/terminal/clipboard.h"
#include "tokenizer/formats/base64.h"

#include <gtest/gtest.h>

namespace vllm::app {
namespace {

// The test vectors of RFC 4648.
TEST(ClipboardTest, Base64HasThePaddingOfTheStandard) {
  EXPECT_EQ(tokenizer::EncodeBase64(""), "");
  EXPECT_EQ(tokenizer::EncodeBase64("f"), "Zg==");
  EXPECT_EQ(tokenizer::EncodeBase64("fo"), "Zm8=");
  EXPECT_EQ(tokenizer::EncodeBase64("foo"), "Zm9v");
  EXPECT_EQ(tokenizer::EncodeBase64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(tokenizer::EncodeBase64("\xff\xfe\xfd"), "//79");
}

TEST(ClipboardTest, LongestTextFitsInASequenceOf100000Bytes) {
  const std::string longest = tokenizer::EncodeBase64(std::string(kMaxTerminalClipboardBytes, 'a'));
  EXPECT_LE(longest.size() + std::string("\x1b]52;c;\a").size(), 100'000u);
}

}  // namespace
}  // namespace vllm::app
