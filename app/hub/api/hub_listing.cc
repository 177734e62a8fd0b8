#include "app/hub/api/hub_listing.h"

#include <nlohmann/json.hpp>

#include "app/hub/repository_path.h"
#include "app/output/json_text.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/json_scanner.h"
#include "tokenizer/formats/tokenizer_error.h"

namespace vllm::app {
namespace {

using Json = nlohmann::ordered_json;

// 2^53: larger integers are not exact in JSON.
constexpr int64_t kMaxFileBytes = int64_t{1} << 53;

[[noreturn]] void Fail(const std::string& repo_id, const std::string& why) {
  throw ModelError("model " + Escape(repo_id) + ": cannot read the hub's answer: " + why);
}

Json Parse(std::string_view json, const std::string& repo_id) {
  Json value;
  if (const std::string why = ParseJsonText(json, value); !why.empty()) Fail(repo_id, why);
  return value;
}

std::string StringOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t SizeOf(const Json& object, const std::string& path, const std::string& repo_id) {
  const auto found = object.find("size");
  if (found == object.end() || !found->is_number_unsigned() || found->get<uint64_t>() > uint64_t{kMaxFileBytes}) {
    Fail(repo_id, "file " + Escape(path) + " has no valid size");
  }
  return found->get<int64_t>();
}

HubFile ParseFile(const Json& entry, const std::string& repo_id) {
  HubFile file;
  file.path = StringOf(entry, "path");
  if (!IsSafeRepositoryPath(file.path)) {
    throw ModelError("model " + Escape(repo_id) + ": the hub names a file by an unsafe path (" + Escape(file.path) +
                     ")");
  }
  const auto lfs = entry.find("lfs");
  file.is_lfs = lfs != entry.end() && lfs->is_object();
  const Json& source = file.is_lfs ? *lfs : entry;
  file.etag = StringOf(source, "oid");
  file.size = SizeOf(source, file.path, repo_id);
  constexpr size_t kSha256Digits = 64;
  if (!IsBlobName(file.etag) || (file.etag.size() == kSha256Digits) != file.is_lfs) {
    Fail(repo_id, "file " + Escape(file.path) + " has no valid hash");
  }
  return file;
}

}  // namespace

std::string ParseCommit(std::string_view json, const std::string& repo_id) {
  // The answer also lists all files. A tree of them would take more memory than the program needs for its own work.
  std::string commit;
  try {
    commit = tokenizer::OptionalString(tokenizer::ReadMembers(json, "the answer"), "sha", "the answer");
  } catch (const tokenizer::TokenizerError& error) {
    Fail(repo_id, error.what());
  }
  if (!IsCommit(commit)) Fail(repo_id, "it names no commit");
  return commit;
}

void ParseTree(std::string_view json, const std::string& repo_id, std::vector<HubFile>& files) {
  const Json value = Parse(json, repo_id);
  if (!value.is_array()) Fail(repo_id, "the list of files is not an array");
  for (const Json& entry : value) {
    if (!entry.is_object()) Fail(repo_id, "an entry of the list of files is not an object");
    if (StringOf(entry, "type") != "file") continue;
    if (files.size() >= kMaxHubFiles) {
      throw ModelError("model " + Escape(repo_id) + ": the repository has too many files (limit " +
                       std::to_string(kMaxHubFiles) + ")");
    }
    files.push_back(ParseFile(entry, repo_id));
  }
}

}  // namespace vllm::app
