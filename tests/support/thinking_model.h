// The bundled model with a think tag: two rare tokens of its vocabulary become <think> and </think>. Functions without
// state; any thread.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "tokenizer/loaders/load_tokenizer.h"

namespace vllm::testing_support {

inline constexpr int32_t kThinkId = 2046;
inline constexpr int32_t kEndThinkId = 2047;

// A template like Qwen3's: thinking can be switched off, and the thoughts of earlier turns are left out.
inline constexpr char kThinkTemplate[] =
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role == 'assistant' %}<|assistant|>\n{{ m.content.split('</think>')[-1] | trim }}{{ eos_token }}"
    "{% else %}<|{{ m.role }}|>{{ m.content | trim }}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n</think>\n{% else %}<think>\n{% endif %}"
    "{% endif %}";

inline std::string GuideDirectory() { return std::string(VLLMCLI_SOURCE_DIR) + "/app/guide_model"; }

// Returns tokenizer.json of the bundled model with the two tags. As in Qwen3, they are no special tokens unless
// `are_special` is true.
inline std::string ThinkingTokenizerJson(bool are_special = false) {
  std::ifstream file(GuideDirectory() + "/tokenizer.json");
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(file);
  nlohmann::ordered_json& model = json["model"];
  const std::pair<int32_t, std::string> tags[] = {{kThinkId, "<think>"}, {kEndThinkId, "</think>"}};
  for (const auto& [id, tag] : tags) {
    std::string old;
    for (const auto& [token, token_id] : model["vocab"].items()) {
      if (token_id == id) old = token;
    }
    nlohmann::ordered_json merges = nlohmann::ordered_json::array();
    for (const auto& merge : model["merges"]) {
      std::string left = merge.is_string() ? merge.get<std::string>() : merge[0].get<std::string>();
      std::string right = merge.is_string() ? "" : merge[1].get<std::string>();
      if (merge.is_string()) {
        const size_t space = left.find(' ');
        right = left.substr(space + 1);
        left.resize(space);
      }
      if (left + right != old) merges.push_back(merge);
    }
    model["merges"] = merges;
    model["vocab"].erase(old);
    model["vocab"][tag] = id;
    json["added_tokens"].push_back({{"id", id},
                                    {"content", tag},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", are_special}});
  }
  return json.dump();
}

inline std::shared_ptr<const tokenizer::Tokenizer> ThinkingTokenizer(bool are_special = false) {
  return tokenizer::ParseTokenizerJson(ThinkingTokenizerJson(are_special), "thinking tokenizer");
}

// Gives a copy of the bundled model this tokenizer and `chat_template`. Returns its directory.
inline std::string AddThinkTags(const std::filesystem::path& directory,
                                const std::string& chat_template = kThinkTemplate, bool are_special = false) {
  std::filesystem::remove(directory / "tokenizer.json");  // it may be a link to the bundled model's file
  std::ofstream(directory / "tokenizer.json") << ThinkingTokenizerJson(are_special);
  std::ifstream old(directory / "tokenizer_config.json");
  nlohmann::ordered_json config = nlohmann::ordered_json::parse(old);
  old.close();
  config["chat_template"] = chat_template;
  std::ofstream(directory / "tokenizer_config.json") << config.dump();
  return directory.string();
}

}  // namespace vllm::testing_support
