#include "app/editor/multi_line.h"

namespace vllm::app {
namespace {

constexpr std::string_view kMarker = "\"\"\"";
constexpr std::string_view kBlanks = " \t\n";

size_t CountMarkers(std::string_view text) {
  size_t count = 0;
  for (size_t i = text.find(kMarker); i != std::string_view::npos; i = text.find(kMarker, i + kMarker.size())) ++count;
  return count;
}

std::string_view WithoutBlanksAround(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

}  // namespace

bool HasOpenBlock(std::string_view draft) {
  return WithoutBlanksAround(draft).starts_with(kMarker) && CountMarkers(draft) % 2 == 1;
}

std::string MessageOfDraft(std::string_view draft) {
  std::string_view block = WithoutBlanksAround(draft);
  if (!block.starts_with(kMarker) || !block.ends_with(kMarker) || CountMarkers(block) != 2) return std::string(draft);
  block.remove_prefix(kMarker.size());
  block.remove_suffix(kMarker.size());
  if (block.starts_with('\n')) block.remove_prefix(1);
  if (block.ends_with('\n')) block.remove_suffix(1);
  return std::string(block);
}

bool ContinuesAfterBackslash(std::string_view draft, size_t cursor) {
  if (cursor < draft.size() && draft[cursor] != '\n') return false;
  size_t num_backslashes = 0;
  while (num_backslashes < cursor && draft[cursor - 1 - num_backslashes] == '\\') ++num_backslashes;
  return num_backslashes % 2 == 1;
}

}  // namespace vllm::app
