// A hostile hub: `vllmcli pull` ends with an error, in bounded time and memory, and writes nothing outside of the
// cache.
#include <filesystem>

#include "tests/hub/pull_test.h"

namespace vllm::app {
namespace {

using namespace testing_support;  // the faults

class PullHostileTest : public PullTest {
 protected:
  PullHostileTest() : model_(MakeRepository("org/model", ModelFiles(1000))) {
    server_.AddRepository(model_);
    environment()["HF_HUB_ETAG_TIMEOUT"] = "2";
    environment()["HF_HUB_DOWNLOAD_TIMEOUT"] = "2";
  }
  // Pulls the model and expects an error that is not a crash, and no file anywhere.
  std::string ExpectRejected() {
    const ProgramResult result = Pull({"org/model"});
    EXPECT_TRUE(result.status == 1 || result.status == 3) << result.status << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.find('\x1b'), std::string::npos) << result.err;
    EXPECT_EQ(AllFiles(), std::set<std::string>());
    return result.err;
  }

  HubRepository model_;
};

class PullHostilePathTest : public PullHostileTest, public testing::WithParamInterface<std::string> {};

TEST_P(PullHostilePathTest, IsNotWritten) {
  std::map<std::string, std::string> files = ModelFiles(1000);
  files[GetParam()] = "{}";
  HubRepository model = MakeRepository("org/model", files);
  server_.AddRepository(model);
  ExpectRejected();
}

// Each ends in .json, so that it is one of the files that belong to a model.
INSTANTIATE_TEST_SUITE_P(Paths, PullHostilePathTest,
                         testing::Values("../x.json", "../../../../x.json", "a/../../x.json",
                                         "/tmp/vllmcli-hostile.json", "//x.json", "./x.json", "a//x.json", "a/./x.json",
                                         "..", ".", "a\\..\\..\\x.json", "C:\\x.json", "C:x.json",
                                         std::string("a\0.json", 7), "a\n.json", "\x1b[2Jx.json", "\x7f.json",
                                         std::string(300, 'a') + ".json", std::string(2000, '/') + ".json"));

TEST_F(PullHostileTest, AFileIsNotWrittenThroughADirectoryOfTheSameName) {
  // "config.json" would have to be a file and a directory.
  std::map<std::string, std::string> files = ModelFiles(1000);
  files["config.json/x.json"] = "{}";
  server_.AddRepository(MakeRepository("org/model", files));
  const ProgramResult result = Pull({"org/model", "--include", "*"});
  EXPECT_TRUE(result.status == 3 || result.status == 4) << result.status << result.err;
  ExpectNoWrongBlob();
}

class PullHostileJsonTest : public PullHostileTest, public testing::WithParamInterface<std::string> {};

TEST_P(PullHostileJsonTest, IsRejectedAsTree) {
  server_.AddFault({.path = "/tree/", .change = ReplaceBody(GetParam())});
  ExpectRejected();
}

TEST_P(PullHostileJsonTest, IsRejectedAsRevision) {
  server_.AddFault({.path = "/revision/", .change = ReplaceBody(GetParam())});
  ExpectRejected();
}

INSTANTIATE_TEST_SUITE_P(
    Texts, PullHostileJsonTest,
    testing::Values(
        "", "{", "null", "[]", "{}", "[1]", R"([{"type":"file"}])", R"({"sha":1})", R"({"sha":"../../x"})",
        R"({"sha":"0123456789012345678901234567890123456789", "sha":"x"})",
        R"([{"type":"file","path":"config.json","size":-1,"oid":"0123456789012345678901234567890123456789"}])",
        R"([{"type":"file","path":"config.json","size":1e300,"oid":"0123456789012345678901234567890123456789"}])",
        R"([{"type":"file","path":"config.json","size":2,"oid":"../../../x"}])",
        R"([{"type":"file","path":"model.safetensors","size":2,"oid":"0123456789012345678901234567890123456789","lfs":{"oid":"/etc/x","size":2}}])",
        R"([{"type":"file","path":["config.json"],"size":2,"oid":"0123456789012345678901234567890123456789"}])",
        "[{\"type\":\"file\",\"path\":\"\xff\xfe.json\",\"size\":2,\"oid\":"
        "\"0123456789012345678901234567890123456789\"}]",
        std::string(100'000, '['), std::string("{\"a\":") + std::string(100'000, '{'),
        "<html>Sign in to the hotel's network</html>", std::string("\xff\xfe\0\0", 4)));

TEST_F(PullHostileTest, AnAnswerWithoutEndIsRejected) {
  server_.AddFault(
      {.path = "/tree/", .change = RepeatBody("[", R"({"type":"directory","path":"x","oid":"","size":0},)")});
  ExpectRejected();
}

TEST_F(PullHostileTest, ARevisionWithoutEndIsRejected) {
  server_.AddFault({.path = "/revision/", .change = RepeatBody("{\"sha\":\"", "0")});
  ExpectRejected();
}

TEST_F(PullHostileTest, PagesWithoutEndAreRejected) {
  server_.AddFault({.path = "/tree/", .change = EndlessPages()});
  ExpectRejected();
}

TEST_F(PullHostileTest, AnEndlessErrorIsRejected) {
  server_.AddFault({.path = "/tree/", .change = AnswerError(404, "EntryNotFound", "gone")});
  server_.AddFault({.path = "/tree/", .change = RepeatBody("", "error ")});
  ExpectRejected();
}

TEST_F(PullHostileTest, LongHeadersAreRejected) {
  server_.AddFault({.path = "/tree/", .change = AddHeaders(HttpHeaders(100, {"X-Long", std::string(10'000, 'x')}))});
  ExpectRejected();
}

TEST_F(PullHostileTest, MessagesOfTheServerAreEscaped) {
  server_.AddFault({.change = AnswerError(403, "", "\x1b[2J\x1b]0;title\x07 denied")});
  EXPECT_NE(ExpectRejected().find("denied"), std::string::npos);
}

TEST_F(PullHostileTest, RedirectsWithoutEndAreRejected) {
  server_.AddFault({.path = "/tree/", .change = RedirectToItself()});
  ExpectRejected();
  server_.RemoveFaults();
  server_.AddFault({.path = "resolve", .change = RedirectToItself()});
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 1) << result.err;
  ExpectNoWrongBlob();
}

TEST_F(PullHostileTest, RedirectsToOtherProtocolsAreRejected) {
  home_.Write("secret", "secret");
  for (const std::string& location :
       {"file://" + home_.path() + "/secret", std::string("ftp://127.0.0.1/x"), std::string("gopher://127.0.0.1/x"),
        std::string("data:,x"), std::string("//"), std::string("http://"),
        std::string("http://user:password@127.0.0.1/"), std::string(100'000, 'x')}) {
    server_.RemoveFaults();
    server_.AddFault({.path = "resolve", .change = RedirectTo(location)});
    const ProgramResult result = Pull({"org/model"});
    EXPECT_TRUE(result.status == 1 || result.status == 3) << location.substr(0, 50) << result.status << result.err;
    ExpectNoWrongBlob();
  }
}

TEST_F(PullHostileTest, AFileThatIsLongerThanDeclaredIsNotStored) {
  server_.AddCdnFault({.path = "model.safetensors", .change = RepeatBody("", "x")});
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 1) << result.err;
  ExpectNoWrongBlob();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(home_.path())) {
    EXPECT_LE(entry.is_regular_file() ? entry.file_size() : 0, 100 * kKiB) << entry.path();
  }
}

TEST_F(PullHostileTest, AnEnormousFileIsRejectedBeforeTheDownload) {
  const std::string entry =
      R"([{"type":"file","path":"config.json","size":2,"oid":"0123456789012345678901234567890123456789"},)"
      R"({"type":"file","path":"model.safetensors","size":1000000000000000,"oid":)"
      R"("0123456789012345678901234567890123456789","lfs":{"size":1000000000000000,"oid":")" +
      std::string(64, '0') + R"("}}])";
  server_.AddFault({.path = "/tree/", .change = ReplaceBody(entry)});
  const ProgramResult result = Pull({"org/model"});
  EXPECT_EQ(result.status, 4) << result.err;
  EXPECT_EQ(Downloads(server_), std::vector<std::string>());
}

TEST_F(PullHostileTest, NamesThatAreNotModelsAreRejectedWithoutARequest) {
  for (const char* name : {"../x", "a/b/c", "/etc/passwd", "org/..", "org/mod el", "org/model:", "", "-", "org//model",
                           "org/model:../x.gguf", "https://example.com/org/model", "org/model\n"}) {
    const ProgramResult result = Pull({name});
    EXPECT_EQ(result.status, 2) << name << ": " << result.err;
  }
  EXPECT_EQ(Pull({"org/model", "--revision", "../main"}).status, 2);
  EXPECT_EQ(server_.Requests(), std::vector<std::string>());
  EXPECT_EQ(AllFiles(), std::set<std::string>());
}

}  // namespace
}  // namespace vllm::app
