#include "app/hub/repository_path.h"

#include <algorithm>

#include "engine/config/escape.h"

namespace vllm::app {
namespace {

constexpr size_t kMaxSegmentBytes = 255;
constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxNameBytes = 96;
constexpr size_t kCommitDigits = 40;
constexpr size_t kSha256Digits = 64;

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool IsSafeRepositoryPath(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) return false;
  if (path.find('\\') != std::string_view::npos || (path.size() > 1 && path[1] == ':')) return false;
  // Escape changes control characters and invalid UTF-8.
  if (Escape(path, kMaxPathBytes) != path) return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view segment = path.substr(begin, end - begin);
    if (segment.empty() || segment.size() > kMaxSegmentBytes || segment == "." || segment == "..") return false;
    begin = end + 1;
  }
  return true;
}

bool IsRepositoryNamePart(std::string_view name) {
  if (name.empty() || name.size() > kMaxNameBytes) return false;
  if (name.find("--") != std::string_view::npos || name.find("..") != std::string_view::npos) return false;
  for (const char end : {name.front(), name.back()}) {
    if (end == '-' || end == '.') return false;
  }
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

bool IsRepositoryId(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsRepositoryNamePart(text);
  return IsRepositoryNamePart(text.substr(0, slash)) && IsRepositoryNamePart(text.substr(slash + 1));
}

bool IsCommit(std::string_view revision) { return revision.size() == kCommitDigits && IsLowerHex(revision); }

bool IsRevision(std::string_view revision) {
  return IsSafeRepositoryPath(revision) && revision.size() <= kMaxSegmentBytes && revision.front() != '-' &&
         std::none_of(revision.begin(), revision.end(),
                      [](char c) { return std::string_view(" ~^:?*[#%").find(c) != std::string_view::npos; });
}

bool IsBlobName(std::string_view name) {
  return (name.size() == kCommitDigits || name.size() == kSha256Digits) && IsLowerHex(name);
}

}  // namespace vllm::app
