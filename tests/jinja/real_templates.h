// Real chat templates and their renderings by Jinja2, read from the test data in VLLMCLI_REALDATA. Functions without
// state; any thread.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace vllm::tokenizer {

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string RealData(const std::string& name) { return std::string(VLLMCLI_REALDATA) + "/" + name; }

inline bool HasRealTemplates() { return std::ifstream(RealData("chat-template-vectors/rendered.json")).good(); }

struct RealRendering {
  std::string template_name, source, context_name, context_json, bos_token, eos_token, expected;
  bool rejected = false;
  std::string second_opinion;  // how @huggingface/jinja compares: "same", "also refuses", "differs", "fails: WHY", ...
};

// Returns the source of a template. `name` is "FILE.jinja", "DIRECTORY/tokenizer_config.json" or "FILE.jsonl line N
// (NAME)". Line numbers start at 0, and each line is an object {NAME: source}.
inline std::string RealTemplateText(const std::string& name) {
  const size_t line_offset = name.find(" line ");
  if (line_offset == std::string::npos) {
    const std::string text = ReadText(RealData(name));
    return name.ends_with(".json") ? nlohmann::json::parse(text).at("chat_template").get<std::string>() : text;
  }
  std::ifstream file(RealData(name.substr(0, line_offset)));
  std::string line;
  for (int i = std::stoi(name.substr(line_offset + 6)); i >= 0; --i) std::getline(file, line);
  return nlohmann::json::parse(line).begin().value().get<std::string>();
}

inline std::vector<RealRendering> RealRenderings() {
  std::map<std::string, std::string> contexts, sources;
  const auto context_list = nlohmann::ordered_json::parse(ReadText(RealData("chat-template-vectors/contexts.json")));
  for (auto context : context_list) {
    const auto name = context.at("name").get<std::string>();
    context.erase("name");
    contexts[name] = context.dump();
  }
  std::vector<RealRendering> result;
  for (const auto& entry : nlohmann::json::parse(ReadText(RealData("chat-template-vectors/rendered.json")))) {
    RealRendering rendering;
    rendering.template_name = entry.at("template").get<std::string>();
    rendering.context_name = entry.at("context").get<std::string>();
    rendering.context_json = contexts.at(rendering.context_name);
    const auto text_or_empty = [&](const char* name) {
      const auto found = entry.find(name);
      return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string();
    };
    rendering.bos_token = text_or_empty("bos_token");
    rendering.eos_token = text_or_empty("eos_token");
    rendering.rejected = entry.contains("error");
    if (!rendering.rejected) rendering.expected = entry.at("expected").get<std::string>();
    rendering.second_opinion = text_or_empty("hf_jinja_js");
    std::string& source = sources[rendering.template_name];
    if (source.empty()) source = RealTemplateText(rendering.template_name);
    rendering.source = source;
    result.push_back(std::move(rendering));
  }
  return result;
}

}  // namespace vllm::tokenizer
