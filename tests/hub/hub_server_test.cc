// Tests of the tests' own hub (tests/support/hub): a fault that it does not produce would make a test of `vllmcli pull`
// pass for the wrong reason.
#include "tests/support/hub/hub_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/formats/regular_file.h"

namespace vllm::testing_support {
namespace {

struct Answer {
  int status = 0;
  std::string head;
  std::string body;

  std::string Header(const std::string& name) const {
    const size_t begin = head.find("\r\n" + name + ": ");
    if (begin == std::string::npos) return "";
    const size_t value = begin + name.size() + 4;
    return head.substr(value, head.find("\r\n", value) - value);
  }
};

// Sends one request and reads until the server closes the connection.
Answer Fetch(const HttpServer& server, const std::string& method, const std::string& target,
             const std::string& headers = "") {
  const tokenizer::UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(server.port()));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(tokenizer::WriteAll(
                fd.get(), method + " " + target + " HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n" + headers + "\r\n"),
            0);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
  }
  Answer answer;
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  answer.head = text.substr(0, end + 2);
  answer.body = text.substr(end + 4);
  answer.status = std::stoi(answer.head.substr(9));
  return answer;
}

class HubServerTest : public testing::Test {
 protected:
  HubServerTest() {
    repository_ = MakeRepository("org/model", {{"config.json", "{}"}, {"sub/model.safetensors", RandomBytes(1000, 1)}});
    server_.AddRepository(repository_);
  }
  Answer Hub(const std::string& method, const std::string& target, const std::string& headers = "") {
    return Fetch(server_.hub(), method, target, headers);
  }
  // Follows the redirect of the LFS file to the CDN.
  Answer Weights(const std::string& headers = "") {
    const std::string location = Hub("HEAD", "/org/model/resolve/main/sub/model.safetensors").Header("Location");
    const std::string url = server_.cdn().Url();
    EXPECT_EQ(location.substr(0, url.size()), url);
    return Fetch(server_.cdn(), "GET", location.substr(url.size()), headers);
  }

  HubServer server_;
  HubRepository repository_;
};

TEST(HubRepositoryTest, BlobIdsAreThoseOfGit) {
  EXPECT_EQ(GitBlobId(""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST_F(HubServerTest, RevisionsNameTheCommit) {
  const std::string commit = repository_.CommitOf("main");
  for (const std::string revision : {"main", commit.c_str()}) {
    const Answer answer = Hub("GET", "/api/models/org/model/revision/" + revision);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(nlohmann::json::parse(answer.body)["sha"], commit);
  }
  EXPECT_EQ(Hub("GET", "/api/models/org/model/revision/none").Header("X-Error-Code"), "RevisionNotFound");
}

TEST_F(HubServerTest, TreesHavePages) {
  HubServerOptions options;
  options.tree_page_size = 1;
  HubServer server(options);
  server.AddRepository(repository_);
  std::string paths;
  std::string target = "/api/models/org/model/tree/main?recursive=true";
  for (int page = 0; page < 3; ++page) {
    const Answer answer = Fetch(server.hub(), "GET", target);
    const nlohmann::json entries = nlohmann::json::parse(answer.body);
    EXPECT_EQ(entries.size(), 1u);
    for (const auto& entry : entries) paths += entry["path"].get<std::string>() + " ";
    const std::string link = answer.Header("Link");
    EXPECT_EQ(link.empty(), page == 2) << link;
    if (!link.empty()) target = link.substr(11, link.find('>') - 11);  // after "<http://hub"
  }
  EXPECT_EQ(paths, "config.json sub sub/model.safetensors ");
}

TEST_F(HubServerTest, LfsFilesAreOnTheCdnAndSmallFilesAreNot) {
  const Answer head = Hub("HEAD", "/org/model/resolve/main/sub/model.safetensors");
  EXPECT_EQ(head.status, 302);
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.Header("X-Repo-Commit"), repository_.CommitOf("main"));
  EXPECT_EQ(head.Header("X-Linked-Etag"), "\"" + repository_.File("sub/model.safetensors").sha256 + "\"");
  EXPECT_EQ(head.Header("X-Linked-Size"), "1000");
  EXPECT_EQ(Weights().body, RandomBytes(1000, 1));
  const Answer small = Hub("GET", "/org/model/resolve/main/config.json");
  EXPECT_EQ(small.status, 307);
  const Answer file = Hub("GET", small.Header("Location"));
  EXPECT_EQ(file.body, "{}");
  EXPECT_EQ(file.Header("ETag"), "\"" + GitBlobId("{}") + "\"");
  EXPECT_EQ(Hub("HEAD", "/org/model/resolve/main/none").Header("X-Error-Code"), "EntryNotFound");
}

TEST_F(HubServerTest, RangesAreServed) {
  const std::string bytes = RandomBytes(1000, 1);
  const Answer part = Weights("Range: bytes=10-19\r\n");
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.Header("Content-Range"), "bytes 10-19/1000");
  EXPECT_EQ(part.body, bytes.substr(10, 10));
  EXPECT_EQ(Weights("Range: bytes=990-\r\n").body, bytes.substr(990));
  EXPECT_EQ(Weights("Range: bytes=-10\r\n").body, bytes.substr(990));
  const Answer beyond = Weights("Range: bytes=1000-\r\n");
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(beyond.Header("Content-Range"), "bytes */1000");
  EXPECT_EQ(Weights("Range: bytes=10-19\r\nIf-Range: \"other\"\r\n").status, 200);
}

TEST_F(HubServerTest, LinksToTheCdnExpire) {
  const std::string location = Hub("HEAD", "/org/model/resolve/main/sub/model.safetensors").Header("Location");
  server_.ExpireLinks();
  EXPECT_EQ(Fetch(server_.cdn(), "GET", location.substr(server_.cdn().Url().size())).status, 403);
  EXPECT_EQ(Weights().status, 200);
}

TEST_F(HubServerTest, TokensDecideWhoMayRead) {
  HubRepository gated = MakeRepository("org/gated", {{"config.json", "{}"}});
  gated.access = HubAccess::kGated;
  gated.readers = {"reader"};
  server_.AddRepository(gated);
  server_.AddToken("other");
  const auto status = [&](const std::string& target, const std::string& token) {
    const Answer answer = Hub("GET", target, token.empty() ? "" : "Authorization: Bearer " + token + "\r\n");
    return std::to_string(answer.status) + " " + answer.Header("X-Error-Code");
  };
  EXPECT_EQ(status("/api/models/org/gated/tree/main", ""), "200 ");
  EXPECT_EQ(status("/org/gated/resolve/main/config.json", ""), "401 GatedRepo");
  EXPECT_EQ(status("/org/gated/resolve/main/config.json", "other"), "403 GatedRepo");
  EXPECT_EQ(status("/org/gated/resolve/main/config.json", "reader"), "307 ");
  EXPECT_EQ(status("/api/models/org/gated/tree/main", "wrong"), "401 ");
  EXPECT_EQ(status("/api/models/org/none", ""), "401 RepoNotFound");
  EXPECT_EQ(status("/api/models/org/none", "other"), "404 RepoNotFound");
}

TEST_F(HubServerTest, RenamedRepositoriesAreRedirected) {
  server_.Rename("old", "org/model");
  EXPECT_EQ(Hub("GET", "/api/models/old/revision/main").Header("Location"), "/api/models/org/model/revision/main");
  EXPECT_EQ(Hub("GET", "/old/resolve/main/config.json").Header("Location"), "/org/model/resolve/main/config.json");
}

TEST_F(HubServerTest, FaultsChangeTheChosenResponses) {
  const std::string bytes = RandomBytes(1000, 1);
  server_.AddCdnFault({.path = "model.safetensors", .change = CutAfter(100), .num_correct = 1, .num_faulty = 1});
  EXPECT_EQ(Weights().body, bytes);
  const Answer cut = Weights();
  EXPECT_EQ(cut.Header("Content-Length"), "1000");
  EXPECT_EQ(cut.body, bytes.substr(0, 100));
  EXPECT_EQ(Weights().body, bytes);
  server_.AddCdnFault({.change = FlipByte(15)});
  EXPECT_NE(Weights("Range: bytes=10-19\r\n").body, bytes.substr(10, 10));
  EXPECT_EQ(Weights("Range: bytes=20-29\r\n").body, bytes.substr(20, 10));
  server_.RemoveFaults();
  server_.AddCdnFault({.change = IgnoreRange()});
  EXPECT_EQ(Weights("Range: bytes=10-19\r\n").body, bytes);
  server_.RemoveFaults();
  server_.AddCdnFault({.change = AddToContentLength(-10)});
  EXPECT_EQ(Weights().Header("Content-Length"), "990");
}

TEST_F(HubServerTest, TheGateStopsBodiesAtAByte) {
  server_.gate().Limit(100);
  std::string body;
  std::thread client([&] { body = Weights().body; });
  EXPECT_TRUE(server_.gate().WaitUntilASenderWaits());
  EXPECT_EQ(server_.gate().passed(), 100u);
  server_.gate().Open();
  client.join();
  EXPECT_EQ(body, RandomBytes(1000, 1));
}

TEST_F(HubServerTest, TheServerEndsWhileAClientWaits) {
  auto server = std::make_unique<HubServer>();
  server->AddRepository(repository_);
  server->AddFault({.change = NeverAnswer()});
  Answer answer;
  std::thread client([&] { answer = Fetch(server->hub(), "GET", "/api/models/org/model"); });
  EXPECT_TRUE(server->hub().WaitForRequest([](const HttpRequest&) { return true; }));
  server.reset();
  client.join();
  EXPECT_EQ(answer.status, 0);
}

}  // namespace
}  // namespace vllm::testing_support
