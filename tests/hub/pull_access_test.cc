// Who may read a repository: tokens, which must not leak, gated and private repositories, proxies and certificates.
#include <algorithm>
#include <fstream>

#include "tests/hub/pull_test.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using namespace testing_support;  // the faults

const std::string kToken = "hf_SecretSecretSecretSecret";

class PullAccessTest : public PullTest {
 protected:
  explicit PullAccessTest(const HubServerOptions& options = {})
      : PullTest(options), model_(MakeRepository("org/model", ModelFiles(1000))) {
    model_.readers = {kToken};
    server_.AddRepository(model_);
    server_.AddToken("hf_other");
  }
  void SetAccess(HubAccess access) {
    model_.access = access;
    server_.AddRepository(model_);
  }
  // Pulls the model and expects that the token is not visible anywhere.
  ProgramResult PullSecretly() {
    ProgramResult result = Pull({"org/model"});
    EXPECT_EQ(result.err.find(kToken), std::string::npos) << result.err;
    EXPECT_EQ(result.out.find(kToken), std::string::npos) << result.out;
    for (const std::string& path : AllFiles()) {
      if (path.ends_with("token")) continue;
      EXPECT_EQ(ReadFile(Path(path)).find(kToken), std::string::npos) << path;
    }
    for (const HttpExchange& exchange : server_.cdn().Exchanges()) {
      EXPECT_EQ(exchange.request.Header("Authorization"), "") << exchange.request.target;
      EXPECT_EQ(exchange.request.target.find(kToken), std::string::npos);
    }
    return result;
  }
  // Returns the distinct tokens that the hub has received; "" for none.
  static std::set<std::string> TokensAt(const HttpServer& server) {
    std::set<std::string> tokens;
    for (const HttpExchange& exchange : server.Exchanges()) tokens.insert(exchange.request.Header("Authorization"));
    return tokens;
  }
  void ExpectTokenAtHub(const std::string& token) {
    server_.ForgetRequests();
    PullSecretly();
    EXPECT_EQ(TokensAt(server_.hub()), std::set<std::string>{token.empty() ? "" : "Bearer " + token});
  }
  void WriteToken(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }

  HubRepository model_;
};

TEST_F(PullAccessTest, ATokenOpensAPrivateRepositoryAndDoesNotReachTheCdn) {
  SetAccess(HubAccess::kPrivate);
  environment()["HF_TOKEN"] = kToken;
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(TokensAt(server_.hub()), std::set<std::string>{"Bearer " + kToken});
  EXPECT_EQ(TokensAt(server_.cdn()), std::set<std::string>{""});
}

TEST_F(PullAccessTest, TheTokenIsThatOfTheEnvironmentOrElseOfTheFile) {
  server_.AddToken("hf_file");
  server_.AddToken("hf_old");
  ExpectTokenAtHub("");
  WriteToken(Path("hf/token"), "hf_file\n");
  ExpectTokenAtHub("hf_file");
  WriteToken(Path("other-token"), "  hf_other \n\n");
  environment()["HF_TOKEN_PATH"] = Path("other-token");
  ExpectTokenAtHub("hf_other");
  environment()["HUGGING_FACE_HUB_TOKEN"] = "hf_old";
  ExpectTokenAtHub("hf_old");
  environment()["HF_TOKEN"] = kToken;
  ExpectTokenAtHub(kToken);
  environment()["HF_HUB_DISABLE_IMPLICIT_TOKEN"] = "1";
  ExpectTokenAtHub("");
}

TEST_F(PullAccessTest, ATokenThatCannotBeSentIsAnError) {
  environment()["HF_TOKEN"] = kToken + "\r\nX-Injected: 1";
  EXPECT_EQ(PullSecretly().status, 2);
  EXPECT_EQ(server_.Requests(), std::vector<std::string>());
}

TEST_F(PullAccessTest, AGatedModelWithoutATokenNamesThePageAndTheVariable) {
  SetAccess(HubAccess::kGated);
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find(server_.endpoint() + "/org/model"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("HF_TOKEN"), std::string::npos) << result.err;
  ExpectNoWrongBlob();
}

TEST_F(PullAccessTest, AGatedModelWithoutPermissionNamesThePage) {
  SetAccess(HubAccess::kGated);
  environment()["HF_TOKEN"] = "hf_other";
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find(server_.endpoint() + "/org/model"), std::string::npos) << result.err;
  EXPECT_NE(result.err.find("access"), std::string::npos) << result.err;
}

TEST_F(PullAccessTest, AGatedModelWithPermissionIsPulled) {
  SetAccess(HubAccess::kGated);
  environment()["HF_TOKEN"] = kToken;
  EXPECT_EQ(PullSecretly().status, 0);
}

TEST_F(PullAccessTest, APrivateOrMissingRepositoryIsNotFound) {
  SetAccess(HubAccess::kPrivate);
  for (const std::string token : {"", "hf_other"}) {
    environment()["HF_TOKEN"] = token;
    for (const std::string name : {"org/model", "org/missing"}) {
      const ProgramResult result = Pull({name});
      EXPECT_EQ(result.status, 3) << result.err;
      EXPECT_NE(result.err.find(name), std::string::npos) << result.err;
      const std::string reason = token.empty() ? "private" : "the account of your token may not read it";
      EXPECT_NE(result.err.find(reason), std::string::npos) << result.err;
    }
  }
  EXPECT_EQ(AllFiles(), std::set<std::string>());
}

TEST_F(PullAccessTest, AMissingRevisionIsNamed) {
  const ProgramResult result = Pull({"org/model", "--revision", "v9"});
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find("v9"), std::string::npos) << result.err;
  EXPECT_EQ(AllFiles(), std::set<std::string>());
}

TEST_F(PullAccessTest, ADisabledRepositoryIsAnError) {
  SetAccess(HubAccess::kDisabled);
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find("disabled"), std::string::npos) << result.err;
}

TEST_F(PullAccessTest, AnInvalidTokenIsNamedAndNotShown) {
  environment()["HF_TOKEN"] = kToken + "x";
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find("HF_TOKEN"), std::string::npos) << result.err;
}

TEST_F(PullAccessTest, AFileThatIsGoneIsAnError) {
  server_.AddFault({.path = "/config.json", .change = AnswerError(404, "EntryNotFound", "Entry not found")});
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 3);
  EXPECT_NE(result.err.find("config.json"), std::string::npos) << result.err;
}

TEST_F(PullAccessTest, ARedirectToAnotherHostDoesNotGetTheToken) {
  HubServer other;
  other.AddRepository(model_);
  environment()["HF_TOKEN"] = kToken;
  server_.AddFault({.path = "/org/model/resolve/", .change = RedirectToServer(other.endpoint())});
  const ProgramResult result = PullSecretly();
  EXPECT_NE(other.Requests(), std::vector<std::string>()) << result.err;
  EXPECT_EQ(TokensAt(other.hub()), std::set<std::string>{""});
}

TEST_F(PullAccessTest, MetadataIsNotReadFromAnotherHost) {
  HubServer other;
  other.AddRepository(model_);
  environment()["HF_TOKEN"] = kToken;
  server_.AddFault({.path = "/api/models/", .change = RedirectToServer(other.endpoint())});
  const ProgramResult result = PullSecretly();
  EXPECT_TRUE(result.status == 1 || result.status == 3) << result.err;
  for (const std::string& token : TokensAt(other.hub())) EXPECT_EQ(token, "");
}

TEST_F(PullAccessTest, APageOnAnotherHostIsNotRead) {
  HubServer other;
  other.AddRepository(model_);
  environment()["HF_TOKEN"] = kToken;
  server_.AddFault(
      {.path = "/tree/",
       .change = AddHeaders({{"Link", "<" + other.endpoint() + "/api/models/org/model/tree/main>; rel=\"next\""}})});
  const ProgramResult result = PullSecretly();
  EXPECT_TRUE(result.status == 1 || result.status == 3) << result.err;
  EXPECT_EQ(other.Requests(), std::vector<std::string>());
}

TEST_F(PullAccessTest, AProxyGetsTheRequests) {
  environment()["HF_ENDPOINT"] = "http://hub.example";
  environment()["http_proxy"] = server_.endpoint();
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 0) << result.err;
  for (const HttpExchange& exchange : server_.hub().Exchanges()) {
    const std::string& target = exchange.request.target;
    EXPECT_TRUE(target.starts_with("http://hub.example/") || target.starts_with(server_.cdn().Url() + "/cdn/"))
        << target;
  }
  EXPECT_EQ(server_.cdn().Exchanges().size(), 0u);
}

TEST_F(PullAccessTest, NoTokenIsSentInClearText) {
  environment()["HF_ENDPOINT"] = "http://hub.example";
  environment()["http_proxy"] = server_.endpoint();
  environment()["HF_TOKEN"] = kToken;
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(TokensAt(server_.hub()), std::set<std::string>{""});
  EXPECT_NE(result.err.find("https"), std::string::npos) << result.err;
}

TEST_F(PullAccessTest, HostsOfNoProxyAreAskedDirectly) {
  environment()["http_proxy"] = "http://127.0.0.1:1";
  environment()["no_proxy"] = "127.0.0.1";
  EXPECT_EQ(PullSecretly().status, 0);
}

// The servers' certificate is issued by an authority that the program does not know.
class PullTlsTest : public PullAccessTest {
 protected:
  explicit PullTlsTest(const CertificateOptions& certificate = {}, bool is_proxy = false)
      : PullAccessTest(Options(certificate, is_proxy)) {
    authority_path_ = home_.Write("authority.pem", Authority().certificate_pem());
  }
  static const TestAuthority& Authority() {
    static const TestAuthority authority;
    return authority;
  }
  static HubServerOptions Options(const CertificateOptions& certificate, bool is_proxy) {
    static TlsCertificate issued;  // until the server has read it
    issued = Authority().Issue(certificate);
    HubServerOptions options;
    options.http.certificate = &issued;
    options.http.is_proxy = is_proxy;
    return options;
  }
  void ExpectRejectedCertificate() {
    environment()["HF_TOKEN"] = kToken;
    const ProgramResult result = PullSecretly();
    EXPECT_EQ(result.status, 1) << result.err;
    EXPECT_NE(result.err.find("certificate"), std::string::npos) << result.err;
    EXPECT_EQ(server_.Requests(), std::vector<std::string>());
    EXPECT_EQ(server_.hub().num_connections(), 1);  // another attempt would not help
  }

  std::string authority_path_;
};

TEST_F(PullTlsTest, AnUnknownAuthorityIsRejected) { ExpectRejectedCertificate(); }

TEST_F(PullTlsTest, AnAuthorityOfTheEnvironmentIsAccepted) {
  for (const char* variable : {"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    environment()[variable] = authority_path_;
    environment()["HF_TOKEN"] = kToken;
    const ProgramResult result = PullSecretly();
    EXPECT_EQ(result.status, 0) << variable << result.err;
    EXPECT_EQ(TokensAt(server_.hub()), std::set<std::string>{"Bearer " + kToken});
    fs::remove_all(Cache());
    environment().erase(variable);
  }
}

TEST_F(PullTlsTest, ARedirectToClearTextIsRejected) {
  HubServer clear_text;
  clear_text.AddRepository(model_);
  environment()["CURL_CA_BUNDLE"] = authority_path_;
  environment()["HF_TOKEN"] = kToken;
  server_.AddFault({.path = "/resolve/", .change = RedirectToServer(clear_text.endpoint())});
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_EQ(clear_text.Requests(), std::vector<std::string>());
}

class PullWrongHostTest : public PullTlsTest {
 protected:
  PullWrongHostTest() : PullTlsTest(CertificateOptions{.names = "DNS:other.example"}) {}
};

TEST_F(PullWrongHostTest, ACertificateOfAnotherHostIsRejected) {
  environment()["CURL_CA_BUNDLE"] = authority_path_;
  ExpectRejectedCertificate();
}

class PullExpiredTest : public PullTlsTest {
 protected:
  PullExpiredTest() : PullTlsTest(CertificateOptions{.valid_from = -10, .valid_until = -1}) {}
};

TEST_F(PullExpiredTest, AnExpiredCertificateIsRejected) {
  environment()["CURL_CA_BUNDLE"] = authority_path_;
  ExpectRejectedCertificate();
}

class PullTunnelTest : public PullTlsTest {
 protected:
  PullTunnelTest() : PullTlsTest(CertificateOptions{.names = "DNS:hub.example,IP:127.0.0.1"}, /*is_proxy=*/true) {}
};

TEST_F(PullTunnelTest, AProxyOnlySeesTheHostOfEncryptedRequests) {
  environment()["CURL_CA_BUNDLE"] = authority_path_;
  environment()["HF_ENDPOINT"] = "https://hub.example";
  environment()["https_proxy"] = server_.endpoint();
  environment()["HF_TOKEN"] = kToken;
  const ProgramResult result = PullSecretly();
  EXPECT_EQ(result.status, 0) << result.err;
  for (const HttpExchange& exchange : server_.hub().Exchanges()) {
    const HttpRequest& request = exchange.request;
    EXPECT_EQ(request.is_encrypted, request.method != "CONNECT");
    if (request.method == "CONNECT" || request.path.starts_with("/cdn/")) {
      EXPECT_EQ(request.Header("Authorization"), "") << request.target;
    }
  }
}

}  // namespace
}  // namespace vllm::app
