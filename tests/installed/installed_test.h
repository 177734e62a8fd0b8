// InstalledTest: a Hugging Face cache, an own models directory and the user's other directories, all empty and in a
// temporary directory to which the environment points during one test. Single-threaded.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "tests/support/temp_directory.h"

namespace vllm::app {

class InstalledTest : public testing::Test {
 protected:
  static constexpr char kCommit[] = "0123456789abcdef0123456789abcdef01234567";

  void SetUp() override {
    SetVariable("HF_HUB_CACHE", root() + "/hub");
    SetVariable("XDG_DATA_HOME", root() + "/data");
    SetVariable("XDG_CONFIG_HOME", root() + "/config");
    SetVariable("XDG_STATE_HOME", root() + "/state");
    std::filesystem::create_directory(root() + "/hub");
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) {
      if (value) {
        setenv(name.c_str(), value->c_str(), 1);
      } else {
        unsetenv(name.c_str());
      }
    }
  }

  const std::string& root() const { return directory_.path(); }
  std::string Own() const { return root() + "/data/vllmcli/models"; }
  // "OWNER--NAME" is the repository's directory without its prefix.
  std::string Repository(const std::string& name) const { return root() + "/hub/models--" + name; }
  std::string Snapshot(const std::string& name, const std::string& commit = kCommit) const {
    return Repository(name) + "/snapshots/" + commit;
  }

  static void WriteFile(const std::filesystem::path& path, const std::string& contents) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << contents;
  }

  // Adds a file to a snapshot as the hub's clients do: the contents in blobs/`blob`, and a relative link.
  void AddFile(const std::string& name, const std::string& path, const std::string& blob, const std::string& contents,
               const std::string& commit = kCommit) const {
    WriteFile(Repository(name) + "/blobs/" + blob, contents);
    AddLink(name, path, blob, commit);
  }
  void AddLink(const std::string& name, const std::string& path, const std::string& blob,
               const std::string& commit = kCommit) const {
    const std::filesystem::path link = Snapshot(name, commit) + "/" + path;
    std::filesystem::create_directories(link.parent_path());
    std::string up = "../../";
    for (const char c : path) up += c == '/' ? "../" : "";
    std::filesystem::create_symlink(up + "blobs/" + blob, link);
  }
  void AddRef(const std::string& name, const std::string& revision = "main",
              const std::string& commit = kCommit) const {
    WriteFile(Repository(name) + "/refs/" + revision, commit);
  }

  void SetVariable(const std::string& name, const std::string& value) {
    const char* old = std::getenv(name.c_str());
    saved_.emplace(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  TempDirectory directory_;
  std::map<std::string, std::optional<std::string>> saved_;
};

}  // namespace vllm::app
