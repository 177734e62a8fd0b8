// Helpers for tests of the grammars of tool calls: constraints, tools with parameters that are easy to get wrong, and
// Outputs, which reads outputs with a grammar. One thread per object.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/structured_output/compile_grammar.h"
#include "engine/structured_output/matcher/grammar_automaton.h"
#include "engine/structured_output/tool_calls/tool_call_constraint.h"
#include "tests/tool_calls/call_text.h"

namespace vllm::testing_support {

enum class Choice { kAuto, kRequired };

inline ToolCallConstraint ConstraintOf(const std::string& format, Choice choice, bool parallel_calls = true) {
  return {FindToolCallFormat(format), choice == Choice::kRequired, parallel_calls, TestTools()->tools()};
}

inline std::vector<ToolDefinition> StrictTools() {
  return ParseToolDefinitions(R"([
    {"name": "get_weather", "parameters": {"type": "object", "required": ["city", "days"],
      "additionalProperties": false, "properties": {
        "city": {"enum": ["Oslo", "Rome", "Zürich \"East\"", "null", "3", "</parameter>"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 14}, "hourly": {"type": "boolean"},
        "unit": {"type": ["string", "null"], "maxLength": 3},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 4}, "maxItems": 2}}}},
    {"name": "get_time", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}},
    {"name": "note", "parameters": {"type": "object", "required": ["text"], "additionalProperties": false,
      "properties": {"text": {"type": "string", "pattern": "^[a-c<\"'\\\\]{1,4}$"},
                     "to": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}]},
                     "lines": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                     "at": {"type": "object", "additionalProperties": false, "properties": {
                       "a:b": {"type": "null"}, "x": {"type": "number", "minimum": 0, "maximum": 1}}}}}}
  ])");
}

class Outputs {
 public:
  explicit Outputs(const ToolCallConstraint& constraint, std::vector<std::string> special_tokens = {})
      : special_tokens_(std::move(special_tokens)) {
    GrammarVocabulary vocabulary;
    const auto num_special = static_cast<int32_t>(special_tokens_.size());
    vocabulary.find = [this](std::string_view text) -> std::optional<int32_t> {
      for (size_t i = 0; i < special_tokens_.size(); ++i) {
        if (special_tokens_[i] == text) return static_cast<int32_t>(i);
      }
      return std::nullopt;
    };
    vocabulary.bytes = [num_special](int32_t id) -> std::optional<std::string> {
      return id < num_special ? std::optional<std::string>("") : std::nullopt;
    };
    automaton_ = std::make_unique<GrammarAutomaton>(
        CompileGrammar(ToolCallParams(constraint), vocabulary),
        std::make_shared<const VocabTrie>(std::vector<std::string>(special_tokens_.size()), num_special));
  }

  // Reads `text`, in which special tokens are themselves if `with_tokens` is set.
  bool Accepts(std::string_view text, bool with_tokens = true) {
    GrammarAutomaton::Position position;
    while (!text.empty()) {
      bool is_token = false;
      for (size_t i = 0; i < special_tokens_.size() && with_tokens && !is_token; ++i) {
        if (!text.starts_with(special_tokens_[i])) continue;
        if (!automaton_->AdvanceToken(position, static_cast<int32_t>(i))) return false;
        text.remove_prefix(special_tokens_[i].size());
        is_token = true;
      }
      if (is_token) continue;
      if (!automaton_->Advance(position, text.substr(0, 1))) return false;
      text.remove_prefix(1);
    }
    return automaton_->MayEnd(position);
  }

  GrammarAutomaton& automaton() { return *automaton_; }

 private:
  std::vector<std::string> special_tokens_;
  std::unique_ptr<GrammarAutomaton> automaton_;
};

}  // namespace vllm::testing_support
