#include "engine/tool_calls/syntax/tool_call_format.h"

#include <array>
#include <vector>

#include "engine/tool_calls/syntax/tool_call_format_table.h"

namespace vllm {
namespace {

// Calls `visit` for each part of a list until it returns true, and returns whether one did.
template <typename Visit>
bool AnyPart(std::string_view list, char separator, const Visit& visit) {
  while (!list.empty()) {
    const size_t end = list.find(separator);
    if (visit(list.substr(0, end))) return true;
    list = end == std::string_view::npos ? std::string_view() : list.substr(end + 1);
  }
  return false;
}

// The order in which templates and vocabularies are searched. Texts of one format occur in those of others, so special
// ones come first: "<tool_call>" is in the templates of many families.
constexpr std::array<std::string_view, 27> kDetectionOrder = {
    "openai",         "gemma4",         "functiongemma", "deepseek_v32", "deepseek_v3",     "kimi_k2",
    "minimax_m2",     "seed_oss",       "glm45",         "qwen3_coder",  "mistral",         "cohere",
    "nemotron_json",  "longcat",        "internlm",      "lfm2",         "olmo3",           "jamba",
    "granite-20b-fc", "phi4_mini_json", "granite",       "hermes",       "llama4_pythonic", "pythonic",
    "llama3_json",    "mistral_v11",    "deepseek_v31"};

const ToolCallFormat* VariantOf(const ToolCallFormat* format, std::string_view chat_template,
                                const IsTokenFunction& is_token) {
  if (format->name == "mistral") {
    const bool has_args =
        chat_template.find("[ARGS]") != std::string_view::npos || (is_token != nullptr && is_token("[ARGS]"));
    return has_args ? FindToolCallFormat("mistral_v11") : format;
  }
  if (format->name == "deepseek_v3" && chat_template.find("<｜tool▁sep｜>") != std::string_view::npos &&
      chat_template.find("```json") == std::string_view::npos) {
    return FindToolCallFormat("deepseek_v31");
  }
  return format;
}

const ToolCallFormat* DetectWithoutVariants(std::string_view chat_template, const IsTokenFunction& is_token) {
  for (const std::string_view name : kDetectionOrder) {
    const ToolCallFormat* format = FindToolCallFormat(name);
    if (AnyPart(format->template_texts, '\n',
                [&](std::string_view text) { return chat_template.find(text) != std::string_view::npos; })) {
      return format;
    }
  }
  if (is_token == nullptr) return nullptr;
  for (const std::string_view name : kDetectionOrder) {
    const ToolCallFormat* format = FindToolCallFormat(name);
    if (!format->vocabulary_text.empty() && is_token(format->vocabulary_text)) return format;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string_view> ListedTexts(std::string_view list) {
  std::vector<std::string_view> texts;
  AnyPart(list, '\n', [&](std::string_view text) {
    texts.push_back(text);
    return false;
  });
  return texts;
}

std::span<const ToolCallFormat> ToolCallFormats() {
  static const std::vector<ToolCallFormat> formats = [] {
    std::vector<ToolCallFormat> all(JsonToolCallFormats().begin(), JsonToolCallFormats().end());
    all.insert(all.end(), TaggedToolCallFormats().begin(), TaggedToolCallFormats().end());
    return all;
  }();
  return formats;
}

const ToolCallFormat* FindToolCallFormat(std::string_view name) {
  for (const ToolCallFormat& format : ToolCallFormats()) {
    if (format.name == name) return &format;
    if (AnyPart(format.aliases, ' ', [&](std::string_view alias) { return alias == name; })) return &format;
  }
  return nullptr;
}

const ToolCallFormat* DetectToolCallFormat(std::string_view chat_template, const IsTokenFunction& is_token) {
  const ToolCallFormat* format = DetectWithoutVariants(chat_template, is_token);
  return format == nullptr ? nullptr : VariantOf(format, chat_template, is_token);
}

const ToolCallFormat* ChooseToolCallFormat(std::string_view name, std::string_view chat_template,
                                           const IsTokenFunction& is_token) {
  if (name == "auto") return DetectToolCallFormat(chat_template, is_token);
  const ToolCallFormat* format = FindToolCallFormat(name);
  if (format == nullptr || format->name != "mistral") return format;
  return VariantOf(format, chat_template, is_token);
}

}  // namespace vllm
