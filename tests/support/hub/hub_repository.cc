#include "tests/support/hub/hub_repository.h"

#include <openssl/evp.h>

#include <cstring>
#include <random>

namespace vllm::testing_support {
namespace {

std::string HexDigest(const EVP_MD* algorithm, std::string_view prefix, std::string_view bytes) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestInit_ex(context, algorithm, nullptr);
  EVP_DigestUpdate(context, prefix.data(), prefix.size());
  EVP_DigestUpdate(context, bytes.data(), bytes.size());
  EVP_DigestFinal_ex(context, digest, &size);
  EVP_MD_CTX_free(context);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += "0123456789abcdef"[digest[i] >> 4];
    hex += "0123456789abcdef"[digest[i] & 15];
  }
  return hex;
}

bool IsLfsName(std::string_view path) {
  return path.ends_with(".safetensors") || path.ends_with(".gguf") || path.ends_with(".bin") || path.ends_with(".pth");
}

HubFile MakeFile(const std::string& bytes, bool is_lfs) {
  HubFile file;
  file.bytes = std::make_shared<const std::string>(bytes);
  file.is_lfs = is_lfs;
  if (!is_lfs) {
    file.blob_id = GitBlobId(bytes);
    return file;
  }
  file.sha256 = Sha256Hex(bytes);
  file.blob_id = GitBlobId("version https://git-lfs.github.com/spec/v1\noid sha256:" + file.sha256 + "\nsize " +
                           std::to_string(bytes.size()) + "\n");
  return file;
}

}  // namespace

std::string Sha256Hex(std::string_view bytes) { return HexDigest(EVP_sha256(), "", bytes); }

std::string GitBlobId(std::string_view bytes) {
  std::string prefix = "blob " + std::to_string(bytes.size());
  prefix += '\0';
  return HexDigest(EVP_sha1(), prefix, bytes);
}

std::string HubRepository::Commit(const std::map<std::string, std::string>& files, const std::string& branch,
                                  const std::set<std::string>& lfs_paths) {
  HubFiles commit;
  std::string summary = id + " " + std::to_string(commits.size()) + "\n";
  for (const auto& [path, bytes] : files) {
    const HubFile& file = commit[path] = MakeFile(bytes, IsLfsName(path) || lfs_paths.contains(path));
    summary += path + "\n" + file.etag() + "\n";
  }
  const std::string commit_id = GitBlobId(summary);
  commits[commit_id] = std::move(commit);
  branches[branch] = commit_id;
  return commit_id;
}

std::string HubRepository::CommitOf(const std::string& revision) const {
  if (const auto found = branches.find(revision); found != branches.end()) return found->second;
  if (const auto found = tags.find(revision); found != tags.end()) return found->second;
  return commits.contains(revision) ? revision : "";
}

const HubFile& HubRepository::File(const std::string& path, const std::string& revision) const {
  return commits.at(CommitOf(revision)).at(path);
}

HubRepository MakeRepository(const std::string& id, const std::map<std::string, std::string>& files) {
  HubRepository repository;
  repository.id = id;
  repository.Commit(files);
  return repository;
}

std::string RandomBytes(size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::string bytes(size + 8, '\0');
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t value = random();
    std::memcpy(bytes.data() + i, &value, sizeof(value));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace vllm::testing_support
