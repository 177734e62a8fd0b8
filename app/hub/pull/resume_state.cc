#include "app/hub/pull/resume_state.h"

#include "app/http/http_head.h"
#include "app/hub/repository_path.h"

namespace vllm::app {
namespace {

constexpr std::string_view kFirstLine = "vllmcli-partial 1";

// Removes and returns the first line, or returns nullopt if no line break is left.
std::optional<std::string_view> TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

// Returns the rest of a line that begins with `key` and a space.
std::optional<std::string_view> ValueOf(std::optional<std::string_view> line, std::string_view key) {
  if (!line || !line->starts_with(key) || line->size() <= key.size() || (*line)[key.size()] != ' ') return std::nullopt;
  return line->substr(key.size() + 1);
}

// Splits "A B" at the first space.
std::optional<std::pair<std::string_view, std::string_view>> SplitPair(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  const size_t space = text->find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return std::pair(text->substr(0, space), text->substr(space + 1));
}

// Returns the number that `text` is, or -1.
int64_t NumberOf(std::optional<std::string_view> text) { return text ? ParseDecimal(*text).value_or(-1) : -1; }

}  // namespace

std::string FormatResumeState(const ResumeState& state) {
  std::string text(kFirstLine);
  text += "\netag " + state.etag + "\nsize " + std::to_string(state.size);
  text += "\nowner " + std::to_string(state.owner_pid) + " " + state.owner_host + "\n";
  for (const ByteRange range : state.ranges.ranges()) {
    text += "range " + std::to_string(range.begin) + " " + std::to_string(range.end) + "\n";
  }
  return text + "end\n";
}

std::optional<ResumeState> ParseResumeState(std::string_view text) {
  if (text.size() > ResumeState::kMaxBytes || TakeLine(text) != kFirstLine) return std::nullopt;
  const std::optional<std::string_view> etag = ValueOf(TakeLine(text), "etag");
  if (!etag || !IsBlobName(*etag)) return std::nullopt;
  const int64_t size = NumberOf(ValueOf(TakeLine(text), "size"));
  const auto owner = SplitPair(ValueOf(TakeLine(text), "owner"));
  if (size < 0 || !owner) return std::nullopt;
  const int64_t pid = NumberOf(owner->first);
  if (pid < 0) return std::nullopt;
  ResumeState state{std::string(*etag), size, pid, std::string(owner->second), {}};
  int64_t previous_end = -1;
  while (true) {
    const std::optional<std::string_view> line = TakeLine(text);
    if (!line) return std::nullopt;
    if (*line == "end") break;
    const auto ends = SplitPair(ValueOf(line, "range"));
    if (!ends) return std::nullopt;
    const int64_t begin = NumberOf(ends->first);
    const int64_t end = NumberOf(ends->second);
    if (begin < 0 || begin <= previous_end || end <= begin || end > size) return std::nullopt;
    state.ranges.Add({begin, end});
    previous_end = end;
  }
  if (!text.empty()) return std::nullopt;
  return state;
}

}  // namespace vllm::app
