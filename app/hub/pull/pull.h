// Downloads a model from the Hugging Face hub into the hub's cache, which transformers and llama.cpp share. PlanPull
// asks the hub what is needed; Pull downloads it. Both record signals while they run and throw Interrupted if one
// arrives. They use no terminal. Main thread.
//
//   const PullPlan plan = PlanPull({.model = *ParseModelReference("OWNER/NAME:Q4_K_M")}, observer);
//   if (plan.bytes_to_download > 0 && !UserAgrees(plan)) return;
//   const std::filesystem::path model = Pull(plan, observer);
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/hub/api/hub_listing.h"
#include "app/hub/pull/choose_files.h"
#include "app/hub/pull/pull_observer.h"

namespace vllm::app {

struct PullPlan {
  struct File {
    HubFile file;
    bool is_cached = false;    // complete in the cache
    int64_t stored_bytes = 0;  // by an interrupted download
  };

  ModelReference model;
  std::string revision;  // "main", or what the user named
  std::string commit;
  std::vector<File> files;
  std::string gguf_path;                // in the repository; empty: not a GGUF model
  std::vector<std::string> other_tags;  // ChosenFiles::other_tags
  std::vector<HubFile> unchanged;       // files of the last snapshot, not chosen, that this commit has too
  int64_t total_bytes = 0;
  int64_t bytes_to_download = 0;
  std::filesystem::path repository;  // in the cache
  std::filesystem::path snapshot;    // may not exist yet

  // Returns the path to load: the GGUF file, or the snapshot.
  std::filesystem::path ModelPath() const { return gguf_path.empty() ? snapshot : snapshot / gguf_path; }
};

// Finds the commit and the files, and compares them with the cache. Sends only small requests. With HF_HUB_OFFLINE,
// sends none and plans from the snapshot in the cache. Throws ModelError if the model does not exist, may not be read
// or, offline, is not complete in the cache; RequestError if the hub cannot be reached; ConfigError; Interrupted.
PullPlan PlanPull(const PullRequest& request, PullObserver& observer);

// Downloads the missing files and returns PullPlan::ModelPath(). If it is interrupted or fails, another call continues.
// Throws what PlanPull throws, ModelError if a file has the wrong hash or size, and ResourceError if the disk has not
// enough space.
std::filesystem::path Pull(const PullPlan& plan, PullObserver& observer);

}  // namespace vllm::app
