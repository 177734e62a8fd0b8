// TextMarkers: splits text that arrives in pieces at its start and end markers (see ReasoningFormat). Withholds the
// longest end of the text that is the beginning of a marker. The result does not depend on how the text is split. Owned
// by a ThinkingTracker or a ReasoningSplitter; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace vllm {

enum class ReasoningPhase : uint8_t {
  kBefore,    // only white space so far
  kThinking,  // after the start marker
  kAnswer,    // after the end marker, or there was no start marker
};

// Returns the length of the longest proper prefix of a marker that `text` ends with.
size_t PartialMarker(std::string_view text, const std::vector<std::string>& markers);
// The white space around thoughts and answers.
inline constexpr char kSpaces[] = " \t\r\n";
// Returns true if `text` contains only kSpaces.
bool IsBlank(std::string_view text);

class TextMarkers {
 public:
  // Borrows the lists of markers.
  TextMarkers(const std::vector<std::string>& starts, const std::vector<std::string>& ends, bool is_inside)
      : starts_(&starts), ends_(&ends), phase_(is_inside ? ReasoningPhase::kThinking : ReasoningPhase::kBefore) {}

  // Appends the parts of the text that are known to belong to the thought and to the answer.
  void Feed(std::string_view text, std::string& thought, std::string& answer);
  // Appends the withheld text. Must be the last call.
  void Flush(std::string& thought, std::string& answer);
  ReasoningPhase phase() const { return phase_; }
  // Returns the withheld text.
  const std::string& held() const { return held_; }

 private:
  const std::vector<std::string>* starts_;
  const std::vector<std::string>* ends_;
  ReasoningPhase phase_;
  bool has_thought_text_ = false;
  std::string held_;
};

}  // namespace vllm
