#include "app/terminal/text_width.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace vllm::app {
namespace {

std::vector<std::string> Clusters(std::string_view text) {
  std::vector<std::string> clusters;
  for (size_t i = 0; i < text.size(); i += clusters.back().size()) {
    clusters.emplace_back(text.substr(i, ClusterAt(text, i).num_bytes));
  }
  return clusters;
}

TEST(TextWidthTest, SplitsTextIntoGraphemeClusters) {
  using Strings = std::vector<std::string>;
  EXPECT_EQ(Clusters("ab\r\n\n"), (Strings{"a", "b", "\r\n", "\n"}));
  EXPECT_EQ(Clusters("e\u0301x"), (Strings{"e\u0301", "x"}));
  EXPECT_EQ(Clusters("👩‍👩‍👧‍👦!"), (Strings{"👩‍👩‍👧‍👦", "!"}));
  EXPECT_EQ(Clusters("🇩🇪🇫🇷"), (Strings{"🇩🇪", "🇫🇷"}));
  EXPECT_EQ(Clusters("각"), (Strings{"각"}));
  EXPECT_EQ(Clusters("\xFF\xC3z"), (Strings{"\xFF", "\xC3", "z"}));
}

TEST(TextWidthTest, CountsColumnsOfClusters) {
  EXPECT_EQ(TextColumns("abc"), 3);
  EXPECT_EQ(TextColumns("日本"), 4);
  EXPECT_EQ(TextColumns("e\u0301"), 1);
  EXPECT_EQ(TextColumns("👩‍👩‍👧‍👦"), 2);
  EXPECT_EQ(TextColumns("🇩🇪"), 2);
  EXPECT_EQ(TextColumns("👍🏽"), 2);
  EXPECT_EQ(TextColumns("\t\n\x1b"), 0);
  EXPECT_EQ(TextColumns("\xFF"), 1);
  EXPECT_EQ(TextColumns("\U0001FAE8"), 2);  // an emoji of Unicode 15
}

TEST(TextWidthTest, FindsThePreviousCluster) {
  for (const std::string_view text :
       {"a日e\u0301👩‍👩‍👧‍👦\n\n🇩🇪🇫🇷\r\nz", "\xFF\xC3\n\xC3"}) {
    std::vector<size_t> begins;
    for (size_t i = 0; i < text.size(); i += ClusterAt(text, i).num_bytes) begins.push_back(i);
    size_t expected = 0;
    for (size_t position = 1; position <= text.size(); ++position) {
      while (expected + 1 < begins.size() && begins[expected + 1] < position) ++expected;
      EXPECT_EQ(PreviousCluster(text, position), begins[expected]) << position;
    }
  }
}

TEST(TextWidthTest, FitsTextIntoColumns) {
  EXPECT_EQ(FitColumns("日本", 3), "日");
  EXPECT_EQ(FitColumns("日本", 0), "");
  EXPECT_EQ(FitColumns("abe\u0301d", 3), "abe\u0301");
  EXPECT_EQ(FitColumns("ab", 9), "ab");
}

}  // namespace
}  // namespace vllm::app
