#include "engine/reasoning/reasoning_format.h"

#include <array>
#include <optional>
#include <utility>

#include "tokenizer/tokenizer.h"

namespace vllm {
namespace {

// Sources: vllm/reasoning, ollama/model/parsers, and the chat templates of the models. The order decides which family
// is detected: special formats come before <think>, which most models have.
constexpr std::array<ReasoningFamily, 14> kFamilies = {{
    {.name = "openai_gptoss",
     .aliases = "gpt_oss harmony",
     .start = "",
     .end = "",
     .label = "",
     .answer_start = "",
     .answer_end = "",
     .template_text = "",
     .begins_inside = false,
     .is_harmony = true},
    {"gemma4", "", "<|channel>", "<channel|>", "thought\n", "", "", ""},
    {"mistral", "magistral", "[THINK]", "[/THINK]", "", "", "", ""},
    {"seed_oss", "", "<seed:think>", "</seed:think>", "", "", "", "", true},
    {"cohere", "cohere_command", "<|START_THINKING|>", "<|END_THINKING|>", "", "<|START_RESPONSE|>", "<|END_RESPONSE|>",
     ""},
    {"hunyuan_a13b", "hunyuan", "<think>", "</think>", "", "<answer>", "</answer>", "<answer>"},
    {"granite33", "", "<think>", "</think>", "", "<response>", "</response>", "<response>"},
    {"granite", "granite32", "Here is my thought process:\nHere's my thought process:",
     "Here is my response:\nHere's my response:", "", "", "", "Here is my thought process:"},
    {"kimi", "kimi_vl", "◁think▷", "◁/think▷", "", "", "", ""},
    {"qwen3",
     "think glm45 kimi_k2 deepseek_v3 nemotron_v3 olmo3 minimax_m2 ernie45 holo2 lfm2 smollm3 internlm exaone4",
     "<think>", "</think>", "", "", "", ""},
    // Named explicitly: the first versions of these models write no start marker, and their templates neither.
    {"deepseek_r1", "qwq step3 minimax_m2_append_think", "<think>", "</think>", "", "", "", "", true},
    {"reasoning", "", "<reasoning>", "</reasoning>", "", "", "", ""},
    {"thought", "", "<thought>", "</thought>", "", "", "", ""},
    {"thinking", "", "<thinking>", "</thinking>", "", "", "", ""},
}};

std::vector<std::string> Split(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (!list.empty()) {
    const size_t end = list.find(separator);
    parts.emplace_back(list.substr(0, end));
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
  return parts;
}

// Returns the id of `text` if it is one token, and text that contains it is encoded with it.
std::optional<int32_t> MarkerId(const tokenizer::Tokenizer& tokenizer, std::string_view text) {
  const std::optional<int32_t> id = tokenizer.TokenToId(text);
  if (!id) return std::nullopt;
  const std::vector<int32_t> ids = tokenizer.Encode(text, /*add_special_tokens=*/false);
  for (const int32_t encoded : ids) {
    if (encoded == *id) return id;
  }
  return std::nullopt;
}

bool FindTokens(const tokenizer::Tokenizer& tokenizer, ReasoningFormat& format) {
  if (format.family->is_harmony) {
    const std::optional<int32_t> channel = MarkerId(tokenizer, "<|channel|>");
    const std::optional<int32_t> message = MarkerId(tokenizer, "<|message|>");
    const std::optional<int32_t> start = MarkerId(tokenizer, "<|start|>");
    const std::optional<int32_t> end = MarkerId(tokenizer, "<|end|>");
    if (!channel || !message || !start || !end) return false;
    format.kind = ReasoningFormat::Kind::kHarmony;
    format.channel_id = *channel;
    format.message_id = *message;
    format.message_start_id = *start;
    format.message_end_id = *end;
    format.analysis_ids = tokenizer.Encode("analysis", false);
    format.end_ids = tokenizer.Encode("<|end|><|start|>assistant<|channel|>final<|message|>", false);
    return !format.analysis_ids.empty();
  }
  if (format.start_texts.size() != 1 || format.end_texts.size() != 1) return false;
  const std::optional<int32_t> start = MarkerId(tokenizer, format.start_texts[0]);
  const std::optional<int32_t> end = MarkerId(tokenizer, format.end_texts[0]);
  if (!start || !end || *start == *end) return false;
  format.kind = ReasoningFormat::Kind::kTokens;
  format.start_id = *start;
  format.end_id = *end;
  format.end_ids = {*end};
  return true;
}

void SetFailure(ReasoningFormat& format) {
  const std::vector<int32_t>& ids = format.end_ids;
  format.end_failure.assign(ids.size() + 1, 0);
  size_t length = 0;
  for (size_t i = 1; i < ids.size(); ++i) {
    while (length > 0 && ids[i] != ids[length]) length = format.end_failure[length];
    if (ids[i] == ids[length]) ++length;
    format.end_failure[i + 1] = length;
  }
}

}  // namespace

std::span<const ReasoningFamily> ReasoningFamilies() { return kFamilies; }

const ReasoningFamily* FindReasoningFamily(std::string_view name) {
  for (const ReasoningFamily& family : kFamilies) {
    if (family.name == name) return &family;
    for (const std::string& alias : Split(family.aliases, ' ')) {
      if (alias == name) return &family;
    }
  }
  return nullptr;
}

std::shared_ptr<const ReasoningFormat> MakeReasoningFormat(const ReasoningFamily& family, bool by_name,
                                                           std::shared_ptr<const tokenizer::Tokenizer> tokenizer) {
  auto format = std::make_shared<ReasoningFormat>();
  format->family = &family;
  format->begins_inside = by_name && family.begins_inside;
  format->start_texts = Split(family.start, '\n');
  format->end_texts = Split(family.end, '\n');
  if (!FindTokens(*tokenizer, *format)) {
    if (family.is_harmony) return nullptr;
    format->kind = ReasoningFormat::Kind::kText;
    format->end_ids = tokenizer->Encode(format->end_texts[0], false);
  }
  if (format->end_ids.empty()) return nullptr;
  SetFailure(*format);
  format->tokenizer = std::move(tokenizer);
  return format;
}

std::shared_ptr<const ReasoningFormat> DetectReasoningFormat(
    std::string_view chat_template, const std::shared_ptr<const tokenizer::Tokenizer>& tokenizer) {
  // A template that contains the end marker is better evidence than a token that the vocabulary may have inherited.
  for (const bool needs_template : {true, false}) {
    for (const ReasoningFamily& family : kFamilies) {
      const std::string_view evidence = family.is_harmony              ? std::string_view("<|channel|>")
                                        : family.template_text.empty() ? family.end
                                                                       : family.template_text;
      const bool in_template = chat_template.find(evidence) != std::string_view::npos;
      if (needs_template ? !in_template : !family.template_text.empty()) continue;
      std::shared_ptr<const ReasoningFormat> format = MakeReasoningFormat(family, /*by_name=*/false, tokenizer);
      if (format != nullptr && (needs_template || format->kind != ReasoningFormat::Kind::kText)) return format;
    }
  }
  return nullptr;
}

}  // namespace vllm
