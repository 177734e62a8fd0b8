#include "app/installed/remove_model.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/hub/choose_gguf.h"
#include "app/hub/hub_cache.h"
#include "app/hub/model_reference.h"
#include "app/hub/repository_path.h"
#include "app/installed/cached_links.h"
#include "app/installed/directory_files.h"
#include "app/installed/find_model.h"
#include "app/installed/installed_repository.h"
#include "app/installed/list_models.h"
#include "app/installed/model_aliases.h"
#include "engine/config/errors.h"
#include "engine/config/escape.h"
#include "engine/model_loader/gguf/format/file.h"
#include "tokenizer/formats/regular_file.h"

namespace vllm::app {
namespace {

namespace fs = std::filesystem;
using tokenizer::NamesInDirectory;
using tokenizer::UniqueFd;

[[noreturn]] void Fail(const fs::path& path, int error_number) {
  throw ResourceError("cannot remove " + Escape(path.string()) + ": " + std::strerror(error_number));
}

std::optional<struct stat> LinkStatus(const fs::path& path) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

// Returns the bytes that removing a name of this file frees: none if it is a link or has other names.
int64_t FreedBytes(const fs::path& path) {
  const std::optional<struct stat> status = LinkStatus(path);
  return status && S_ISREG(status->st_mode) && status->st_nlink == 1 ? static_cast<int64_t>(status->st_size) : 0;
}

// Returns false if nothing exists at `path`. Throws ConfigError if it is not a directory, but a link or a file.
bool CheckRealDirectory(const std::string& name, const fs::path& path) {
  const std::optional<struct stat> status = LinkStatus(path);
  if (!status) return false;
  if (S_ISDIR(status->st_mode)) return true;
  throw ConfigError("models rm " + Escape(name) + ": " + Escape(path.string()) +
                        (S_ISLNK(status->st_mode) ? " is a symbolic link" : " is not a directory") +
                        ", so its contents may belong to something else",
                    "remove it by hand if it is no longer needed");
}

// Adds a whole directory. The refs of a repository in the cache do not count as files.
void AddWholeDirectory(const fs::path& directory, RemovalPlan& plan) {
  plan.directory = directory.string();
  plan.files.clear();
  plan.bytes = 0;
  plan.num_files = 0;
  for (const DirectoryFile& file : FilesBelow(plan.directory)) {
    const std::optional<struct stat> status = LinkStatus(directory / file.path);
    const bool is_ref = !plan.locks.empty() && file.path.starts_with("refs/");
    if (is_ref || !status || !S_ISREG(status->st_mode)) continue;
    ++plan.num_files;
    plan.bytes += FreedBytes(directory / file.path);
  }
}

// Adds the names in the snapshots that the user wants removed, and the blobs that no other name leads to.
void AddLinks(const fs::path& repository, const std::vector<CachedLink>& links, RemovalPlan& plan) {
  std::set<std::string> kept;
  std::set<std::string> kept_snapshots;
  for (const CachedLink& link : links) {
    if (link.is_doomed) continue;
    kept.insert(link.blob);
    kept_snapshots.insert(link.snapshot);
  }
  if (kept_snapshots.empty()) {
    AddWholeDirectory(repository, plan);
    return;
  }
  std::set<std::string> gone_snapshots;
  std::set<std::string> blobs;
  for (const CachedLink& link : links) {
    if (!link.is_doomed) continue;
    if (!kept_snapshots.contains(link.snapshot)) gone_snapshots.insert(link.snapshot);
    if (!link.blob.empty() && !kept.contains(link.blob)) blobs.insert(link.blob);
  }
  for (const std::string& ref : RefsTo(repository, gone_snapshots)) plan.files.push_back(ref);
  for (const CachedLink& link : links) {
    if (!link.is_doomed) continue;
    const fs::path path = repository / "snapshots" / link.snapshot / link.path;
    plan.files.push_back(path.string());
    // Without symbolic links, the snapshot has the file itself.
    if (link.blob.empty()) {
      ++plan.num_files;
      plan.bytes += FreedBytes(path);
    }
    for (fs::path up = fs::path(link.path).parent_path(); !up.empty(); up = up.parent_path()) {
      plan.empty_after.push_back((repository / "snapshots" / link.snapshot / up).string());
    }
  }
  for (const std::string& snapshot : gone_snapshots) {
    plan.empty_after.push_back((repository / "snapshots" / snapshot).string());
  }
  for (const std::string& blob : blobs) {
    plan.files.push_back((repository / "blobs" / blob).string());
    plan.blobs.push_back(blob);
    ++plan.num_files;
    plan.bytes += FreedBytes(repository / "blobs" / blob);
  }
}

// Marks the links to remove. Returns false if there are none.
bool MarkLinks(const ModelReference& reference, const std::string& commit, std::vector<CachedLink>& links) {
  bool is_any = false;
  std::set<std::string> snapshots;
  for (const CachedLink& link : links) snapshots.insert(link.snapshot);
  for (const std::string& snapshot : snapshots) {
    if (!commit.empty() && snapshot != commit) continue;
    std::vector<std::string> paths;
    for (const CachedLink& link : links) {
      if (link.snapshot == snapshot) paths.push_back(link.path);
    }
    std::set<std::string> doomed(paths.begin(), paths.end());
    if (!reference.tag.empty()) {
      try {
        const std::vector<std::string> parts = ChooseGguf(paths, reference);
        doomed = {parts.begin(), parts.end()};
      } catch (const ModelError&) {
        continue;  // this snapshot does not have the file
      }
    }
    for (CachedLink& link : links) link.is_doomed |= link.snapshot == snapshot && doomed.contains(link.path);
    is_any = is_any || !doomed.empty();
  }
  return is_any;
}

// Plans the removal of a repository in the cache. Returns false if it is not there.
bool PlanCached(const ModelReference& reference, RemovalPlan& plan) {
  const fs::path cache = HubCacheDirectory();
  if (cache.empty()) return false;
  const fs::path repository = RepositoryDirectory(cache, reference.repo_id);
  if (!CheckRealDirectory(plan.name, repository)) return false;
  plan.locks = (cache / ".locks" / RepositoryDirectoryName(reference.repo_id)).string();
  if (reference.tag.empty() && reference.revision.empty()) {
    AddWholeDirectory(repository, plan);
    return true;
  }
  // The names of blobs are looked up in these directories.
  CheckRealDirectory(plan.name, repository / "blobs");
  CheckRealDirectory(plan.name, repository / "snapshots");
  std::string commit;
  if (!reference.revision.empty()) {
    commit = CachedCommit(repository, reference.revision).value_or("");
    if (commit.empty()) return false;
  }
  std::vector<CachedLink> links = ReadCachedLinks(repository);
  if (!MarkLinks(reference, commit, links)) return false;
  AddLinks(repository, links, plan);
  return true;
}

// Plans the removal of a repository in the own models directory. Returns false if it is not there.
bool PlanOwn(const ModelReference& reference, RemovalPlan& plan) {
  const std::optional<InstalledRepository> repository = FindInstalledRepository(reference.repo_id, "");
  if (!repository || repository->origin != kOwnOrigin || !reference.revision.empty()) return false;
  const fs::path directory = repository->directory;
  const fs::path owner = directory.parent_path();
  if (owner != OwnModelsDirectory()) {
    CheckRealDirectory(plan.name, owner);
    plan.empty_after.push_back(owner.string());
  }
  CheckRealDirectory(plan.name, directory);
  if (reference.tag.empty()) {
    AddWholeDirectory(directory, plan);
    return true;
  }
  const std::vector<std::string> paths = ExistingPaths(FilesBelow(directory.string()));
  std::vector<std::string> parts;
  try {
    parts = ChooseGguf(paths, reference);
  } catch (const ModelError&) {
    return false;
  }
  for (const std::string& part : parts) {
    plan.files.push_back((directory / part).string());
    plan.bytes += FreedBytes(directory / part);
  }
  plan.num_files = static_cast<int64_t>(parts.size());
  plan.empty_after.insert(plan.empty_after.begin(), directory.string());
  return true;
}

// Plans the removal of a .gguf file directly in the own models directory. Returns false if it is not there.
bool PlanOwnFile(const std::string& file, RemovalPlan& plan) {
  const fs::path own = OwnModelsDirectory();
  if (own.empty() || !file.ends_with(".gguf") || !IsRepositoryNamePart(file)) return false;
  for (const std::string& part : GgufFile::PartsOf(file)) {
    if (!LinkStatus(own / part)) continue;
    plan.files.push_back((own / part).string());
    plan.bytes += FreedBytes(own / part);
    ++plan.num_files;
  }
  return !plan.files.empty();
}

// Adds the installed models whose files the plan removes.
void AddModels(RemovalPlan& plan) {
  const std::set<std::string> files(plan.files.begin(), plan.files.end());
  for (InstalledModel& model : ListModels()) {
    const std::string& path = model.location.path();
    const bool is_below = !plan.directory.empty() && (path == plan.directory || path.starts_with(plan.directory + "/"));
    if (is_below || files.contains(path)) plan.models.push_back(std::move(model.location));
  }
}

// Locks the files that a download of these blobs would lock. The locks are held as long as the descriptors are open.
std::vector<UniqueFd> LockBlobs(const RemovalPlan& plan) {
  std::vector<UniqueFd> locks;
  if (plan.locks.empty()) return locks;
  std::vector<std::string> names;
  for (const std::string& blob : plan.blobs) names.push_back(blob + ".lock");
  if (!plan.directory.empty()) names = NamesInDirectory(plan.locks);
  for (const std::string& name : names) {
    if (!name.ends_with(".lock")) continue;
    const std::string path = plan.locks + "/" + name;
    UniqueFd fd(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    // Without a lock file, nobody has downloaded the blob, or somebody has deleted the locks.
    if (!fd.valid()) continue;
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw RequestError(
          "models rm " + Escape(plan.name) + ": another process is downloading it (" + Escape(path) + " is locked)",
          "try again when the download has ended");
    }
    locks.push_back(std::move(fd));
  }
  return locks;
}

// Removes a directory with everything in it, without following links. Refs and snapshots first: if this is interrupted,
// no snapshot remains that looks complete.
void RemoveTree(const std::string& directory) {
  for (const char* part : {"refs", "snapshots", "."}) {
    std::error_code error;
    const fs::path path = part == std::string_view(".") ? fs::path(directory) : fs::path(directory) / part;
    fs::remove_all(path, error);
    if (error) Fail(path, error.value());
  }
}

}  // namespace

RemovalPlan PlanRemoval(const std::string& name, const std::string& revision) {
  RemovalPlan plan;
  const std::string target = FindModelAlias(name).value_or(name);
  plan.name = target;
  std::optional<ModelReference> reference = ParseModelReference(target);
  bool is_found = false;
  if (reference) {
    if (!revision.empty()) reference->revision = revision;
    is_found = PlanCached(*reference, plan) || PlanOwn(*reference, plan);
  }
  const size_t slash = target.find('/');
  if (!is_found && slash != std::string::npos && target.ends_with(".gguf") && IsRepositoryId(target)) {
    const ModelReference file{target.substr(0, slash), target.substr(slash + 1), revision};
    is_found = PlanCached(file, plan) || PlanOwn(file, plan);
  }
  is_found = is_found || (revision.empty() && PlanOwnFile(target, plan));
  if (is_found) {
    AddModels(plan);
    return plan;
  }
  ModelLocation location;
  try {
    location = FindModel(target, "auto", revision);
  } catch (const ModelError&) {
    throw ModelError("models rm " + Escape(name) + ": not installed", "vllmcli models lists the installed models");
  }
  if (location.origin == kShippedOrigin) {
    throw ConfigError("models rm " + Escape(name) + ": is the bundled model, which is a part of vllmcli");
  }
  throw ConfigError("models rm " + Escape(name) + ": " + Escape(location.path()) +
                        " is in neither the Hugging Face cache nor vllmcli's models directory",
                    "vllmcli removes only models there; remove other files by hand");
}

int64_t Remove(const RemovalPlan& plan) {
  const std::vector<UniqueFd> locks = LockBlobs(plan);
  if (!plan.directory.empty()) RemoveTree(plan.directory);
  for (const std::string& file : plan.files) {
    if (unlink(file.c_str()) != 0 && errno != ENOENT) Fail(file, errno);
  }
  for (const std::string& directory : plan.empty_after) {
    if (rmdir(directory.c_str()) != 0 && errno != ENOENT && errno != ENOTEMPTY && errno != EEXIST) {
      Fail(directory, errno);
    }
  }
  return plan.bytes;
}

}  // namespace vllm::app
