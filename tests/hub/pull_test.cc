#include "tests/hub/pull_test.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace vllm::app {

namespace fs = std::filesystem;
using testing_support::GitBlobId;
using testing_support::HubFile;
using testing_support::Sha256Hex;

std::map<std::string, std::string> ModelFiles(size_t num_bytes, unsigned seed) {
  return {{"config.json", R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama"})"},
          {"generation_config.json", R"({"do_sample": false})"},
          {"tokenizer.json", R"({"version": "1.0"})"},
          {"tokenizer_config.json", R"({"model_max_length": 1024})"},
          {"model.safetensors", RandomBytes(num_bytes, seed)}};
}

std::string ReadFile(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "(missing)";
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

PullTest::PullTest(const HubServerOptions& options) : server_(options) {
  environment_ = {{"HF_ENDPOINT", server_.endpoint()}, {"HOME", Path("user")}, {"HF_HOME", Path("hf")}};
}

ProgramResult PullTest::Pull(const std::vector<std::string>& arguments) { return StartPull(arguments)->Wait(); }

std::unique_ptr<BackgroundProgram> PullTest::StartPull(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {"pull"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return std::make_unique<BackgroundProgram>(words, environment_);
}

fs::path PullTest::RepositoryInCache(const std::string& repo_id) const {
  std::string name = repo_id;
  if (const size_t slash = name.find('/'); slash != std::string::npos) name.replace(slash, 1, "--");
  return Cache() / ("models--" + name);
}

fs::path PullTest::Snapshot(const HubRepository& repository, const std::string& revision) const {
  return RepositoryInCache(repository.id) / "snapshots" / repository.CommitOf(revision);
}

void PullTest::ExpectCached(const HubRepository& repository, const std::set<std::string>& paths,
                            const std::string& revision) const {
  const fs::path root = RepositoryInCache(repository.id);
  const std::string commit = repository.CommitOf(revision);
  std::set<std::string> expected;
  for (const std::string& path : paths) {
    const HubFile& file = repository.File(path, revision);
    const std::string link = "snapshots/" + commit + "/" + path;
    expected.insert(link);
    expected.insert("blobs/" + file.etag());
    std::string target = "../../blobs/" + file.etag();
    for (const char c : path) {
      if (c == '/') target = "../" + target;
    }
    std::error_code error;
    EXPECT_EQ(fs::read_symlink(root / link, error).string(), target) << link;
    EXPECT_TRUE(ReadFile(root / link) == *file.bytes) << link;
  }
  if (revision != commit) {
    expected.insert("refs/" + revision);
    EXPECT_EQ(ReadFile(root / "refs" / revision), commit);
  }
  std::set<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(root, error)) {
    if (!entry.is_directory())
      found.insert(fs::relative(entry.path().parent_path(), root).string() + "/" + entry.path().filename().string());
  }
  EXPECT_EQ(found, expected);
}

void PullTest::ExpectNoWrongBlob() const {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(home_.path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || entry.path().parent_path().filename() != "blobs") continue;
    if (name.find_first_not_of("0123456789abcdef") != std::string::npos) continue;  // a download that is not finished
    const std::string bytes = ReadFile(entry.path());
    EXPECT_EQ(name.size() == 64 ? Sha256Hex(bytes) : GitBlobId(bytes), name);
  }
}

std::set<std::string> PullTest::AllFiles() const {
  std::set<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(home_.path())) {
    if (entry.is_directory() && !entry.is_symlink()) continue;
    const std::string path = entry.path().string().substr(home_.path().size() + 1);
    if (path.find("/.locks/") == std::string::npos) files.insert(path);
  }
  return files;
}

std::vector<std::string> Downloads(const HubServer& server) {
  std::vector<std::string> requests = server.Requests();
  std::erase_if(requests, [](const std::string& request) {
    return !request.starts_with("GET cdn:") && !request.starts_with("GET /api/resolve-cache/");
  });
  std::sort(requests.begin(), requests.end());
  return requests;
}

}  // namespace vllm::app
