// LarkDocument: the syntax of a grammar in llguidance's dialect of Lark (docs/syntax.md there). A plain value.
//
//   %import common.WS
//   %ignore WS
//   start: "a" item{2,3} | call          // a comment
//   item: NAME | "0".."9" | <|tool|> %json {"type": "object"}
//   NAME: /[a-z]+/ & ~"if"
//   call[suffix="</call>"]: /(?s:.*)/
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace vllm {

struct LarkDocument {
  using NodeId = uint32_t;
  static constexpr size_t kMaxNodes = 1'000'000;
  static constexpr size_t kMaxDefinitions = 50'000;

  enum class Kind : uint8_t {
    kString,      // text, unescaped
    kPattern,     // text, with its flags
    kCodePoints,  // min..max
    kName,        // text: of a rule or terminal
    kToken,       // text: <name>
    kTokenIds,    // ranges
    kJson,        // text: a schema
    kSubstring,   // texts
    kSequence,
    kAlternatives,
    kAnd,
    kNot,
    kRepeat
  };
  struct Node {
    Kind kind = Kind::kSequence;
    size_t at = 0;  // in the text of the grammar
    std::string text = {};
    bool ignores_case = false;          // kString
    bool is_complement = false;         // kTokenIds
    uint32_t min = 0, max = 0;          // kRepeat, kCodePoints
    std::vector<NodeId> children = {};  // kNot, kRepeat: one
    std::vector<std::pair<int32_t, int32_t>> ranges = {};
    std::vector<std::string> texts = {};
  };
  struct Definition {
    std::string name;
    size_t at = 0;
    NodeId body = 0;
    bool is_lazy = false;
    std::optional<NodeId> suffix = {}, stop = {};
  };

  std::vector<Node> nodes;
  std::vector<Definition> definitions;
  std::unordered_map<std::string, uint32_t> by_name;  // indices of definitions
  std::vector<NodeId> ignored;                        // of %ignore
  bool ignores_once = false;                          // between two terminals at most one of them; otherwise any number
  bool ignores_first = false;                         // also before the first terminal
};

// Returns whether a name is that of a terminal, which is written in upper case.
bool IsLarkTerminal(std::string_view name);

// Throws RequestError `grammar: <why> at line <n>, column <n>`.
LarkDocument ReadLark(std::string_view text);

}  // namespace vllm
