// HubServer: a server on loopback that speaks the protocol of the Hugging Face hub, for tests. It serves repositories
// from memory: the model API (revision, tree with pages, refs), and files by /<id>/resolve/<revision>/<path>. As on the
// real hub, LFS files are redirected to another server (the "CDN", on its own port) with a signed link, and small files
// to a relative path. Tests choose faults (hub_fault.h) and see every request.
//
//     HubServer server;
//     server.AddRepository(MakeRepository("org/model", {{"config.json", "{}"}, {"model.safetensors", bytes}}));
//     server.AddCdnFault({.path = "model.safetensors", .change = CutAfter(64 << 10)});
//     RunProgram({"pull", "org/model"}, {.environment = {{"HF_ENDPOINT", server.endpoint()}, ...}});
//
// Owned by a test. Its threads end in the destructor. Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/hub/byte_gate.h"
#include "tests/support/hub/http_server.h"
#include "tests/support/hub/hub_fault.h"
#include "tests/support/hub/hub_repository.h"

namespace vllm::testing_support {

struct HubServerOptions {
  HttpServerOptions http;              // of the hub; the CDN has the same certificate
  std::string cdn_host = "127.0.0.1";  // in the links to the CDN
  size_t tree_page_size = 1000;
};

class HubServer {
 public:
  explicit HubServer(const HubServerOptions& options = {});

  // Returns the value for HF_ENDPOINT.
  std::string endpoint() const { return hub_->Url(); }
  HttpServer& hub() { return *hub_; }
  HttpServer& cdn() { return *cdn_; }
  // Counts the bytes of the CDN's bodies, and stops them at any byte.
  ByteGate& gate() { return cdn_gate_; }

  // Replaces the repository with the same id, if there is one.
  void AddRepository(const HubRepository& repository);
  // Redirects requests for the repository `old_id` to `new_id`.
  void Rename(const std::string& old_id, const std::string& new_id);
  // Declares a token valid. Other tokens are invalid, except those of the repositories' readers.
  void AddToken(const std::string& token);
  // Adds a fault. If several match a request, all of them change the response, in this order.
  void AddFault(const HubFault& fault);
  void AddCdnFault(const HubFault& fault);
  void RemoveFaults();
  // The links that were sent so far get status 403 from the CDN.
  void ExpireLinks();

  // Returns "METHOD PATH" of the requests that both servers have received, the hub's first. For the CDN, PATH is
  // "cdn:FILE" and, if there is one, " RANGE".
  std::vector<std::string> Requests() const;
  void ForgetRequests();

 private:
  struct ArmedFault {
    HubFault fault;
    int num_matches = 0;
  };
  struct Target;

  HttpResponse AnswerHub(const HttpRequest& request);
  HttpResponse AnswerCdn(const HttpRequest& request);
  HttpResponse Route(const HttpRequest& request);
  HttpResponse AnswerApi(const HttpRequest& request, const Target& target, const HubRepository& repository) const;
  HttpResponse Tree(const HttpRequest& request, const Target& target, const HubFiles& files) const;
  HttpResponse AnswerFile(const HttpRequest& request, const Target& target, const HubRepository& repository);
  // Fills `denial` and returns true if the request's token does not give access.
  bool IsDenied(const HttpRequest& request, const HubRepository& repository, bool is_download,
                HttpResponse& denial) const;
  void ApplyFaults(std::vector<ArmedFault>& faults, const HttpRequest& request, HttpResponse& response);
  std::string BaseUrl(const HttpRequest& request) const;

  const HubServerOptions options_;
  ByteGate cdn_gate_;
  ByteGate hub_gate_;  // always open

  mutable std::mutex mutex_;  // guards the fields up to hub_
  std::map<std::string, std::shared_ptr<const HubRepository>> repositories_;
  std::map<std::string, std::string> new_names_;
  std::set<std::string> tokens_;
  std::vector<ArmedFault> hub_faults_;
  std::vector<ArmedFault> cdn_faults_;
  std::map<std::string, HubFile> linked_files_;  // by SHA-256
  int first_valid_link_ = 0;
  int num_links_ = 0;

  std::unique_ptr<HttpServer> cdn_;
  std::unique_ptr<HttpServer> hub_;
};

}  // namespace vllm::testing_support
