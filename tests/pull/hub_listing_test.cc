#include "app/hub/api/hub_listing.h"

#include <gtest/gtest.h>

#include "engine/config/errors.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {
namespace {

const std::string kSha1(40, '1');
const std::string kSha256(64, '2');

std::vector<HubFile> Parse(const std::string& json) {
  std::vector<HubFile> files;
  ParseTree(json, "a/b", files);
  return files;
}

std::string Entry(const std::string& path) {
  return R"([{"type":"file","path":")" + path + R"(","size":5,"oid":")" + kSha1 + R"("}])";
}

TEST(HubListingTest, CommitIsTheMemberSha) {
  EXPECT_EQ(ParseCommit(R"({"siblings":[{"rfilename":"x"}],"sha":")" + kSha1 + R"("})", "a/b"), kSha1);
}

TEST(HubListingTest, AnswerWithoutCommitIsAnError) {
  for (const char* json : {"", "[]", "{}", R"({"sha":5})", R"({"sha":"main"})", R"({"sha":"../../x"})", "{\"sha\":"}) {
    EXPECT_THROW(ParseCommit(json, "a/b"), ModelError) << json;
  }
  EXPECT_THROW(ParseCommit(std::string(100'000, '['), "a/b"), ModelError);
}

TEST(HubListingTest, LargeFilesAreNamedByTheirSha256) {
  const std::string json = R"([{"type":"directory","path":"d","oid":"x","size":0},
    {"type":"file","path":"d/c.json","size":5,"oid":")" +
                           kSha1 + R"("},
    {"type":"file","path":"w","size":7,"oid":")" +
                           kSha1 + R"(","lfs":{"oid":")" + kSha256 +
                           R"(","size":70,"pointerSize":130},"xetHash":"y"}])";
  EXPECT_EQ(Parse(json), (std::vector<HubFile>{{"d/c.json", 5, kSha1, false}, {"w", 70, kSha256, true}}));
}

TEST(HubListingTest, UnsafePathIsAnError) {
  for (const char* path : {"../x", "/etc/passwd", "a/../../x", "a\\\\b", "a\\nb", "", "a//b", "C:x"}) {
    EXPECT_THROW(Parse(Entry(path)), ModelError) << path;
  }
  EXPECT_EQ(MessageOf<ModelError>([] { Parse(Entry("../x")); }),
            "model a/b: the hub names a file by an unsafe path (../x)");
}

TEST(HubListingTest, InvalidEntriesAreErrors) {
  const std::string start = R"([{"type":"file","path":"x",)";
  for (const std::string& json :
       {std::string("{}"), std::string("[1]"), start + R"("oid":")" + kSha1 + R"("}])",
        start + R"("size":-1,"oid":")" + kSha1 + R"("}])", start + R"("size":1e300,"oid":")" + kSha1 + R"("}])",
        start + R"("size":1})" + "]", start + R"("size":1,"oid":"../x"}])",
        start + R"("size":1,"oid":")" + kSha256 + R"("}])",
        start + R"("size":1,"oid":")" + kSha1 + R"(","lfs":{"size":1}}])",
        start + R"("size":18446744073709551615,"oid":")" + kSha1 + R"("}])", std::string(1000, '[')}) {
    EXPECT_THROW(Parse(json), ModelError) << json;
  }
}

TEST(HubListingTest, PagesAreAppendedUpToALimit) {
  std::vector<HubFile> files(kMaxHubFiles - 1);
  ParseTree(Entry("x"), "a/b", files);
  EXPECT_EQ(files.size(), kMaxHubFiles);
  EXPECT_THROW(ParseTree(Entry("y"), "a/b", files), ModelError);
}

}  // namespace
}  // namespace vllm::app
