#include "engine/structured_output/thought_grammar.h"

#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/reasoning/thinking_tracker.h"
#include "engine/tool_calls/syntax/tool_call_format.h"

namespace vllm {
namespace {

// White space between the parts. Models write at most two line breaks.
constexpr char kBlank[] = "BLANK: /[ \\t\\r\\n]{0,8}/\n";

template <typename Text>
std::string OneOf(const std::vector<Text>& texts) {
  std::string choice;
  for (const Text& text : texts) choice += (choice.empty() ? "" : " | ") + nlohmann::json(text).dump();
  return choice;
}

std::string Token(int32_t id) { return " <[" + std::to_string(id) + "]> "; }

// Returns the last token of the prompt that begins or ends a part of a message, or -1.
int32_t LastMark(const ReasoningFormat& format, std::span<const int32_t> prompt_token_ids) {
  for (size_t i = prompt_token_ids.size(); i-- > 0;) {
    const int32_t id = prompt_token_ids[i];
    if (id == format.message_start_id || id == format.message_id || id == format.message_end_id ||
        id == format.channel_id) {
      return id;
    }
  }
  return -1;
}

std::string HarmonyThought(const ReasoningFormat& format, std::span<const int32_t> prompt_token_ids,
                           const ThinkingTracker& tracker) {
  const std::string begin = Token(format.channel_id) + "\"analysis\"" + Token(format.message_id);
  const std::string rest = " TEXT" + Token(format.message_end_id) + Token(format.message_start_id) + "\"assistant\" ";
  const std::string rules = "thought: " + begin + rest + "\nTEXT: /(?s:.*)/\nfinal: " + Token(format.channel_id) +
                            "\"final\"" + Token(format.message_id) + "\n";
  if (tracker.is_thinking()) return "start: " + rest + " thought* final\n" + rules;
  return LastMark(format, prompt_token_ids) == format.message_start_id ? "start: thought* final\n" + rules : "";
}

}  // namespace

std::string BegunMessageGrammar(const std::shared_ptr<const ReasoningFormat>& format,
                                std::span<const int32_t> prompt_token_ids) {
  const int32_t mark = LastMark(*format, prompt_token_ids);
  const std::string next = Token(format->message_start_id) + "\"assistant\"";
  if (mark == format->message_end_id) return "start: " + next + "\n";
  if (mark != format->message_id) return "";
  // The parser looks for the marks in the text, and for a recipient at its beginning.
  const std::string text = "ANY: /(?s:.*)/\nMARK: " + OneOf(ListedTexts(FindToolCallFormat("openai")->more_triggers)) +
                           "\nTEXT: ANY & ~(ANY MARK ANY) & ~(/[ \\t\\r\\n]*to=functions\\./ ANY)\n";
  const std::string end = Token(format->message_end_id) + next;
  // The model may end an answer. It has to write one after a thought.
  const bool is_thinking = ThinkingTracker(format, prompt_token_ids).is_thinking();
  return "start: TEXT " + (is_thinking ? end : "(" + end + ")?") + "\n" + text;
}

std::string ThoughtGrammar(const std::shared_ptr<const ReasoningFormat>& format,
                           std::span<const int32_t> prompt_token_ids) {
  const ThinkingTracker tracker(format, prompt_token_ids);
  if (format->kind == ReasoningFormat::Kind::kHarmony) return HarmonyThought(*format, prompt_token_ids, tracker);
  const std::string rules = std::string(kBlank) + "START: " + OneOf(format->start_texts) +
                            "\nEND: " + OneOf(format->end_texts) +
                            "\nTEXT: /(?s:.*)/\nTHOUGHT: TEXT & ~(TEXT END TEXT)\n";
  return (tracker.is_thinking() ? "start: THOUGHT END BLANK\n" : "start: (BLANK START THOUGHT END BLANK)?\n") + rules;
}

}  // namespace vllm
