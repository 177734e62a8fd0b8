#include "app/hub/pull/pull.h"

#include <algorithm>
#include <optional>
#include <set>
#include <system_error>

#include "app/hub/api/hub_client.h"
#include "app/hub/hub_cache.h"
#include "app/hub/hub_endpoint.h"
#include "app/hub/pull/cache_files.h"
#include "app/hub/pull/downloader.h"
#include "app/hub/pull/partial_blob.h"
#include "app/hub/repository_path.h"
#include "app/output/size_text.h"
#include "app/terminal/signals.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;

// model.safetensors.index.json has about 100 bytes per tensor.
constexpr int64_t kMaxIndexBytes = int64_t{64} << 20;
// For the links, directories and states, and for what other programs write meanwhile.
constexpr int64_t kFreeMargin = int64_t{16} << 20;

fs::path CacheDirectory() {
  const fs::path cache = HubCacheDirectory();
  if (cache.empty()) throw ConfigError("pull: no directory for the cache: set HF_HUB_CACHE, HF_HOME or HOME");
  return fs::absolute(cache);
}

std::string ReadCachedFile(const fs::path& path) {
  std::string text;
  const tokenizer::RegularFile file = tokenizer::ReadRegularFile(path.string(), kMaxIndexBytes, text);
  if (!file.ok()) throw ModelError("cannot read " + Escape(path.string()) + ": " + file.error);
  return text;
}

bool IsCached(const PullPlan& plan, const HubFile& file) {
  return RegularFileSize(plan.repository / "blobs" / file.etag) == file.size ||
         RegularFileSize(plan.snapshot / file.path) == file.size;
}

// Returns the files in a snapshot, as the hub would list them, but without etags.
std::vector<HubFile> ListSnapshot(const fs::path& snapshot) {
  std::vector<HubFile> files;
  std::error_code error;
  fs::recursive_directory_iterator entry(snapshot, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::optional<int64_t> size = RegularFileSize(entry->path());
    if (size) files.push_back({entry->path().lexically_relative(snapshot).string(), *size, "", false});
    if (files.size() >= kMaxHubFiles) break;
  }
  std::sort(files.begin(), files.end(), [](const HubFile& a, const HubFile& b) { return a.path < b.path; });
  return files;
}

void TakeChoice(ChosenFiles chosen, PullPlan& plan) {
  for (HubFile& file : chosen.files) {
    plan.total_bytes += file.size;
    plan.files.push_back({std::move(file)});
  }
  plan.gguf_path = std::move(chosen.gguf_path);
  plan.other_tags = std::move(chosen.other_tags);
}

PullPlan PlanOffline(const PullRequest& request, PullPlan plan) {
  const std::optional<fs::path> snapshot = FindSnapshot(plan.repository, request.model.revision);
  const std::string name = "model " + Escape(ToString(request.model));
  if (!snapshot) {
    throw ModelError(name + ": not in the Hugging Face cache, and HF_HUB_OFFLINE is set", "unset HF_HUB_OFFLINE");
  }
  plan.snapshot = *snapshot;
  plan.commit = snapshot->filename().string();
  const auto read = [&](const HubFile& file) { return ReadCachedFile(*snapshot / file.path); };
  try {
    TakeChoice(ChooseFiles(ListSnapshot(*snapshot), request, read), plan);
  } catch (const ModelError& error) {
    throw ModelError(std::string(error.what()) + ", as far as the cache has it, and HF_HUB_OFFLINE is set",
                     error.hint());
  }
  for (PullPlan::File& file : plan.files) file.is_cached = true;
  return plan;
}

// Finds files that the last snapshot has and this commit has too. Without them in the new snapshot, a model that was
// downloaded before would seem to be gone when refs/REVISION changes.
void FindUnchanged(const std::vector<HubFile>& listing, PullPlan& plan) {
  const std::optional<std::string> last = CachedCommit(plan.repository, plan.revision);
  if (!last || *last == plan.commit) return;
  std::set<std::string> chosen;
  for (const PullPlan::File& file : plan.files) chosen.insert(file.file.path);
  for (const HubFile& file : listing) {
    const fs::path blob = plan.repository / "blobs" / file.etag;
    std::error_code error;
    if (chosen.contains(file.path) || RegularFileSize(blob) != file.size) continue;
    if (fs::equivalent(plan.repository / "snapshots" / *last / file.path, blob, error)) plan.unchanged.push_back(file);
  }
}

void CheckFreeSpace(const PullPlan& plan) {
  const std::optional<int64_t> free = FreeBytes(plan.repository);
  if (!free || *free >= plan.bytes_to_download + kFreeMargin) return;
  throw ResourceError("model " + Escape(ToString(plan.model)) + ": not enough free disk space in " +
                      Escape(plan.repository.parent_path().string()) + " (needs " +
                      SizeText(plan.bytes_to_download + kFreeMargin) + ", has " + SizeText(*free) +
                      "); free some, or set HF_HUB_CACHE to a directory on another disk");
}

// Writes refs/REVISION if it names another commit. A commit has no ref.
void WriteRef(const PullPlan& plan) {
  if (IsCommit(plan.revision) || CachedCommit(plan.repository, plan.revision) == plan.commit) return;
  const fs::path ref = plan.repository / "refs" / plan.revision;
  MakeCacheDirectory(ref.parent_path());
  ReplaceFile(ref, plan.commit, true);
}

void Download(const PullPlan& plan, const std::vector<HubFile>& missing, PullObserver& observer) {
  HttpClient http;
  HubClient hub(http, [&](const std::string& text) { observer.OnNote(text); });
  const DownloadTarget target{plan.model.repo_id, plan.commit, plan.repository / "blobs",
                              plan.repository.parent_path() / ".locks" / plan.repository.filename(), plan.snapshot};
  DownloadFiles(missing, target, hub, observer);
  RemoveOldPartialBlobs(target.blobs, target.locks);
}

}  // namespace

PullPlan PlanPull(const PullRequest& request, PullObserver& observer) {
  const RecordsSignals guard;
  const fs::path cache = CacheDirectory();
  PullPlan plan;
  plan.model = request.model;
  plan.revision = request.model.revision.empty() ? "main" : request.model.revision;
  plan.repository = RepositoryDirectory(cache, request.model.repo_id);
  if (IsHubOffline()) return PlanOffline(request, std::move(plan));

  HttpClient http;
  HubClient hub(http, [&](const std::string& text) { observer.OnNote(text); });
  if (hub.withholds_token()) observer.OnNote("the token is not sent, because HF_ENDPOINT is not https");
  plan.commit = hub.FindCommit(request.model.repo_id, plan.revision);
  plan.snapshot = plan.repository / "snapshots" / plan.commit;
  const std::vector<HubFile> listing = hub.ListFiles(request.model.repo_id, plan.commit);
  const auto read = [&](const HubFile& file) {
    const fs::path blob = plan.repository / "blobs" / file.etag;
    if (RegularFileSize(blob) == file.size) return ReadCachedFile(blob);
    return hub.ReadFile(request.model.repo_id, plan.commit, file.path, kMaxIndexBytes);
  };
  TakeChoice(ChooseFiles(listing, request, read), plan);
  for (PullPlan::File& file : plan.files) {
    file.is_cached = IsCached(plan, file.file);
    if (file.is_cached) continue;
    file.stored_bytes = StoredBytes(plan.repository / "blobs", file.file.etag, file.file.size);
    plan.bytes_to_download += file.file.size - file.stored_bytes;
  }
  FindUnchanged(listing, plan);
  return plan;
}

fs::path Pull(const PullPlan& plan, PullObserver& observer) {
  const RecordsSignals guard;
  if (IsHubOffline()) return plan.ModelPath();
  std::vector<HubFile> missing;
  for (const PullPlan::File& file : plan.files) {
    if (!file.is_cached) missing.push_back(file.file);
  }
  if (!missing.empty()) {
    CheckFreeSpace(plan);
    Download(plan, missing, observer);
  }
  const fs::path blobs = plan.repository / "blobs";
  const auto link = [&](const HubFile& file) {
    if (RegularFileSize(plan.snapshot / file.path) == file.size) return;
    PutIntoSnapshot(blobs / file.etag, plan.snapshot / file.path, false);
  };
  for (const PullPlan::File& file : plan.files) link(file.file);
  for (const HubFile& file : plan.unchanged) link(file);
  SyncDirectory(plan.snapshot);
  // Last, so that the ref never names an incomplete snapshot.
  WriteRef(plan);
  return plan.ModelPath();
}

}  // namespace vllm::app
