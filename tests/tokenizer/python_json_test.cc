#include "tokenizer/formats/python_json.h"

#include <gtest/gtest.h>

#include <string>

namespace vllm::tokenizer {
namespace {

std::string Replaced(const std::string& text) { return ReplacePythonNumbers(text, "<n>", "<i>"); }

TEST(PythonJsonTest, NaNAndInfinityAreReplaced) {
  EXPECT_EQ(Replaced(R"({"a": NaN, "b":Infinity,"c" : -Infinity})"), R"({"a": <n>, "b":<i>,"c" : -<i>})");
  EXPECT_EQ(Replaced("[NaN,Infinity\n,-Infinity]"), "[<n>,<i>\n,-<i>]");
  EXPECT_EQ(Replaced("NaN"), "<n>");
  EXPECT_EQ(Replaced("-Infinity"), "-<i>");
}

TEST(PythonJsonTest, StringsAreUnchanged) {
  for (const char* text :
       {R"({"NaN": "Infinity"})", R"(["a\" NaN", "\\"])", R"(["\\\" Infinity "])", R"("NaN)", R"(["x", " NaN "])"}) {
    EXPECT_EQ(Replaced(text), text);
  }
  EXPECT_EQ(Replaced(R"(["\\", NaN])"), R"(["\\", <n>])");
}

TEST(PythonJsonTest, PartsOfOtherWordsAreUnchanged) {
  for (const char* text : {"[NaNs]", "[xNaN]", "[-NaN]", "[Infinity1]", "[--Infinity]", "[1-Infinity]", "[nan, inf]"}) {
    EXPECT_EQ(Replaced(text), text);
  }
}

}  // namespace
}  // namespace vllm::tokenizer
