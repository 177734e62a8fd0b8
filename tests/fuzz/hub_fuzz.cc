// Fuzzes the parsers of names that users type, of the hub's answers and of the state of an interrupted download. The
// first byte chooses the parser.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "app/http/http_head.h"
#include "app/http/url.h"
#include "app/hub/api/hub_listing.h"
#include "app/hub/model_reference.h"
#include "app/hub/pull/choose_files.h"
#include "app/hub/pull/resume_state.h"
#include "app/hub/repository_path.h"
#include "engine/config/errors.h"
#include "tests/fuzz/fuzz_target.h"

namespace vllm {
namespace {

void FuzzReference(std::string_view text) {
  const std::optional<app::ModelReference> reference = app::ParseModelReference(text);
  if (!reference) return;
  Require(app::IsRepositoryId(reference->repo_id), "the repository has a valid name");
  Require(reference->tag.empty() || app::IsSafeRepositoryPath(reference->tag), "the tag does not leave the cache");
  Require(reference->revision.empty() || app::IsRevision(reference->revision), "the revision is valid");
}

void FuzzListing(std::string_view json) {
  std::vector<app::HubFile> files;
  try {
    app::ParseTree(json, "a/b", files);
  } catch (const ModelError&) {
  }
  for (const app::HubFile& file : files) {
    Require(app::IsSafeRepositoryPath(file.path), "paths do not leave the cache");
    Require(app::IsBlobName(file.etag), "blobs have valid names");
  }
  try {
    const auto read = [&](const app::HubFile&) { return std::string(json); };
    const app::ChosenFiles chosen = app::ChooseFiles(files, {{"a/b", "", ""}, {}, {}}, read);
    Require(!chosen.files.empty(), "a choice has files");
    for (const app::HubFile& file : chosen.files) Require(!app::IsPickle(file.path), "no pickle is chosen");
  } catch (const ModelError&) {
  }
  try {
    Require(app::IsCommit(app::ParseCommit(json, "a/b")), "the commit is valid");
  } catch (const ModelError&) {
  }
}

void FuzzHeaders(std::string_view text) {
  const int status = app::ParseStatusLine(text).value_or(200);
  Require(status >= 100 && status <= 999, "the status has three digits");
  app::HttpHead head(status);
  bool fits = true;
  for (size_t begin = 0; begin < text.size() && fits;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    fits = head.AddLine(text.substr(begin, end - begin));
    begin = end + 1;
  }
  app::RequestedWait(head, std::chrono::system_clock::from_time_t(0));
  app::NextLink(head.Value("link"));
  app::BareEtag(head.Value("etag"));
  if (const auto range = app::ParseContentRange(head.Value("content-range"))) {
    Require(range->begin >= 0 && range->begin < range->end, "a range is not empty");
    Require(range->size < 0 || range->end <= range->size, "a range is in the file");
  }
  if (const auto target = app::RedirectTarget("https://huggingface.co/a/b", head.Value("location"))) {
    Require(app::OriginOf(*target)->is_https(), "redirects do not leave https");
  }
}

void FuzzState(std::string_view text) {
  const std::optional<app::ResumeState> state = app::ParseResumeState(text);
  if (!state) return;
  Require(state->ranges.total() <= state->size, "the ranges are in the file");
  Require(app::ParseResumeState(app::FormatResumeState(*state)).has_value(), "the state can be written");
}

}  // namespace

void FuzzOne(std::string_view bytes) {
  if (bytes.empty()) return;
  const std::string_view text = bytes.substr(1);
  switch (bytes[0]) {
    case 'r':
      return FuzzReference(text);
    case 'l':
      return FuzzListing(text);
    case 'h':
      return FuzzHeaders(text);
    case 's':
      return FuzzState(text);
    default:
      return;
  }
}

}  // namespace vllm
