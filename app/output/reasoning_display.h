// ReasoningDisplay: splits one streamed answer into the thought, which it shows, and the text of the answer, which it
// returns. Owned by the object that prints the answer; main thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/output/thinking_display.h"
#include "engine/reasoning/reasoning_splitter.h"
#include "engine/request/request_output.h"

namespace vllm::app {

class ReasoningDisplay {
 public:
  // `format` may be null: everything is the answer. `hint` is shown at the end of the live line. `keeps_markers`: see
  // ReasoningSplitter.
  ReasoningDisplay(std::shared_ptr<const ReasoningFormat> format, bool skip_special_tokens, ShowThinking mode,
                   std::string hint, bool keeps_markers = false);

  // Adds the time that the thought took in an earlier run.
  void AddTime(std::chrono::milliseconds time) { display_.AddTime(time); }
  // Begins, or begins again, after `prior_token_ids`, whose text is `prior_text`.
  void Begin(std::span<const int32_t> prompt_token_ids, std::span<const int32_t> prior_token_ids,
             const std::string& prior_text);
  // Adds a delta. Shows the new part of the thought, and returns the new text of the answer.
  std::string Take(const CompletionOutput& delta);
  // Redraws the live line if it is due. Call after each step.
  void Update() { display_.Update(); }
  // Erases the live line until the next Update.
  void Clear() { display_.Clear(); }
  // Call when the answer ends without another delta.
  void End() { display_.End(); }

  // Returns the two parts with their token ids, or null without a format.
  const ReasoningParts* parts() const { return splitter_ ? &parts_ : nullptr; }
  const std::string& text() const { return parts_.text; }  // of the answer
  const std::string& thinking() const { return parts_.reasoning; }
  // Number of the first tokens that are the thought and its markers.
  int64_t num_thinking_ids() const {
    return splitter_ ? static_cast<int64_t>(splitter_->num_leading_reasoning_ids()) : 0;
  }
  std::chrono::milliseconds time() const { return display_.time(); }
  bool is_thinking() const { return splitter_ && splitter_->tracker().is_thinking(); }
  bool is_inside_character() const { return splitter_ && splitter_->tracker().is_inside_character(); }
  // Returns the ids that end the thought now. REQUIRES: is_thinking().
  std::vector<int32_t> RestOfEndMarker() const { return splitter_->tracker().RestOfEndMarker(); }

 private:
  void Add(std::span<const int32_t> token_ids, std::string_view text, bool finished);

  std::shared_ptr<const ReasoningFormat> format_;
  bool skip_special_tokens_;
  bool keeps_markers_;
  ThinkingDisplay display_;
  std::optional<ReasoningSplitter> splitter_;
  ReasoningParts parts_;
};

}  // namespace vllm::app
