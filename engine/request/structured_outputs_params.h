// StructuredOutputsParams: the constraint on the text of one request's output, after the model's thinking. vLLM's
// parameter of this name, whose kinds exclude each other. A plain value; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vllm {

struct StructuredOutputsParams {
  // The names of vLLM's fields, whose json_object is the JSON Schema {"type":"object"}; and kToolCalls, which is made
  // from the tools of a request.
  enum class Kind : uint8_t { kJson, kRegex, kChoice, kGrammar, kStructuralTag, kToolCalls };

  // kJson: a JSON Schema. kRegex: a regular expression that the whole text matches. kGrammar: GBNF or Lark.
  // kStructuralTag: JSON. kToolCalls: see ToolCallConstraint. kChoice: not used.
  std::string text;
  Kind kind = Kind::kJson;
  std::vector<std::string> choice = {};  // kChoice: the texts that are allowed
  // A grammar of what comes before the constrained text, such as a thought, in GBNF or Lark; empty: nothing. Set by the
  // engine.
  std::string before = {};
  // For the JSON texts of schemas:
  bool any_order = false;            // members may come in any order; otherwise in that of `properties`
  bool flexible_whitespace = false;  // a line break and its indent may be between tokens of JSON; otherwise nothing may

  bool operator==(const StructuredOutputsParams&) const = default;
};

inline constexpr char kAnyJsonObject[] = R"({"type":"object"})";

}  // namespace vllm
