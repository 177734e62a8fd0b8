// PullTest: the fixture of the tests of `vllmcli pull`. It has a hub on loopback (tests/support/hub/hub_server.h) and
// an empty cache in a temporary directory. Each test runs the real program and compares its exit status, its messages
// and every file of the cache. Used on the test's thread.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/program/background_program.h"
#include "tests/program/program.h"
#include "tests/support/hub/hub_server.h"
#include "tests/support/temp_directory.h"

namespace vllm::app {

using testing_support::HubRepository;
using testing_support::HubServer;
using testing_support::HubServerOptions;
using testing_support::MakeRepository;
using testing_support::RandomBytes;

constexpr size_t kKiB = 1 << 10;
constexpr size_t kMiB = 1 << 20;

// Returns the files of a small model, with `num_bytes` of weights.
std::map<std::string, std::string> ModelFiles(size_t num_bytes, unsigned seed = 1);

// Returns a regular file's bytes, or "(missing)".
std::string ReadFile(const std::filesystem::path& path);

class PullTest : public testing::Test {
 protected:
  explicit PullTest(const HubServerOptions& options = {});

  // The environment of the program. Tests may change it.
  std::map<std::string, std::string>& environment() { return environment_; }
  // Runs `vllmcli pull` with these arguments.
  ProgramResult Pull(const std::vector<std::string>& arguments);
  std::unique_ptr<BackgroundProgram> StartPull(const std::vector<std::string>& arguments);

  std::string Path(const std::string& name) const { return home_.path() + "/" + name; }
  std::filesystem::path Cache() const { return Path("hf/hub"); }
  std::filesystem::path RepositoryInCache(const std::string& repo_id) const;
  std::filesystem::path Snapshot(const HubRepository& repository, const std::string& revision = "main") const;

  // Expects that the repository's directory in the cache contains these files of the revision as huggingface_hub stores
  // them, a ref with the revision's name, and nothing else.
  void ExpectCached(const HubRepository& repository, const std::set<std::string>& paths,
                    const std::string& revision = "main") const;
  // Expects that every blob in the cache has the hash that its name says. Partial downloads have other names.
  void ExpectNoWrongBlob() const;
  // Returns the files and links in the home directory, relative to it, without lock files.
  std::set<std::string> AllFiles() const;

  TempDirectory home_;
  HubServer server_;

 private:
  std::map<std::string, std::string> environment_;
};

// Returns the requests for bodies of files: GET requests to the CDN and for small files.
std::vector<std::string> Downloads(const HubServer& server);

}  // namespace vllm::app
