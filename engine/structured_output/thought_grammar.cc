#include "engine/structured_output/thought_grammar.h"

#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/reasoning/thinking_tracker.h"

namespace vllm {
namespace {

// White space between the parts. Models write at most two line breaks.
constexpr char kBlank[] = "BLANK: /[ \\t\\r\\n]{0,8}/\n";

std::string OneOf(const std::vector<std::string>& texts) {
  std::string choice;
  for (const std::string& text : texts) choice += (choice.empty() ? "" : " | ") + nlohmann::json(text).dump();
  return choice;
}

std::string Token(int32_t id) { return " <[" + std::to_string(id) + "]> "; }

std::string HarmonyThought(const ReasoningFormat& format, std::span<const int32_t> prompt_token_ids,
                           const ThinkingTracker& tracker) {
  const std::string begin = Token(format.channel_id) + "\"analysis\"" + Token(format.message_id);
  const std::string rest = " TEXT" + Token(format.message_end_id) + Token(format.message_start_id) + "\"assistant\" ";
  const std::string rules = "thought: " + begin + rest + "\nTEXT: /(?s:.*)/\nfinal: " + Token(format.channel_id) +
                            "\"final\"" + Token(format.message_id) + "\n";
  if (tracker.is_thinking()) return "start: " + rest + " thought* final\n" + rules;
  // Is the prompt inside the header of a message?
  for (size_t i = prompt_token_ids.size(); i-- > 0;) {
    const int32_t id = prompt_token_ids[i];
    if (id == format.message_start_id) return "start: thought* final\n" + rules;
    if (id == format.message_id || id == format.message_end_id || id == format.channel_id) break;
  }
  return "";
}

}  // namespace

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
