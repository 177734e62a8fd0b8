// ReasoningFormat: how the output of one model marks its thinking. The table of families says which markers exist;
// MakeReasoningFormat finds those of one family in a tokenizer. A format is immutable; any thread.
//
// An output is: white space, a start marker, the thought, an end marker, the answer. The start marker is missing if the
// prompt already ends with it. Only a start marker at the beginning of the output counts. Markers that are single
// tokens are found by their ids, because special tokens are not part of the text, and because a model may write the
// characters of a marker without meaning it. Other markers are found in the text.
//
// gpt-oss ("Harmony") writes several messages with a channel each. The channel "analysis" is the thought, the others
// are the answer:
//   <|channel|>analysis<|message|>THOUGHT<|end|><|start|>assistant<|channel|>final<|message|>ANSWER<|return|>
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer {
class Tokenizer;
}

namespace vllm {

struct ReasoningFamily {
  std::string_view name;     // vLLM's name of its reasoning parser, where it has one
  std::string_view aliases;  // more names, separated by spaces
  // Alternatives are separated by line breaks. Harmony has none.
  std::string_view start;
  std::string_view end;
  std::string_view label;         // text between the start marker and the thought
  std::string_view answer_start;  // text around the answer, which is left out
  std::string_view answer_end;
  // Chosen without being named only if the chat template contains this text. Empty: if the tokenizer has both markers
  // as tokens, or if the template contains the end marker.
  std::string_view template_text;
  // If chosen by name, an output without a start marker begins with the thought.
  bool begins_inside = false;
  bool is_harmony = false;
};

std::span<const ReasoningFamily> ReasoningFamilies();
// Returns the family with this name or alias, or null.
const ReasoningFamily* FindReasoningFamily(std::string_view name);

struct ReasoningFormat {
  enum class Kind : uint8_t { kTokens, kText, kHarmony };

  const ReasoningFamily* family = nullptr;
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  Kind kind = Kind::kText;
  bool begins_inside = false;  // see ReasoningFamily

  int32_t start_id = -1;  // kTokens
  int32_t end_id = -1;    // kTokens
  // kHarmony
  int32_t channel_id = -1, message_id = -1, message_start_id = -1, message_end_id = -1;
  std::vector<int32_t> analysis_ids;  // of "analysis"
  // kText
  std::vector<std::string> start_texts, end_texts;

  // The ids that end a thought, so that an answer follows. end_failure[i] is the length of the longest proper prefix
  // of end_ids that is a suffix of end_ids[0, i].
  std::vector<int32_t> end_ids;
  std::vector<size_t> end_failure;
};

// Returns the format of `family` with this tokenizer, or null if kHarmony's tokens are missing or the end marker cannot
// be encoded. `by_name`: the user named the family.
std::shared_ptr<const ReasoningFormat> MakeReasoningFormat(const ReasoningFamily& family, bool by_name,
                                                           std::shared_ptr<const tokenizer::Tokenizer> tokenizer);
// Chooses the first family whose end marker (or template_text) is in the chat template, else the first whose markers
// are tokens of the tokenizer. Returns null if there is none.
std::shared_ptr<const ReasoningFormat> DetectReasoningFormat(
    std::string_view chat_template, const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer);

}  // namespace vllm
