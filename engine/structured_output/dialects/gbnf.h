// llama.cpp's grammar format GBNF (llama.cpp, grammars/README.md), with what xgrammar's EBNF adds to names.
//
//   NAME ::= ALTERNATIVES              one rule per line; the rule `root` generates the whole text
//   "text"  [a-z]  [^\n]  .  (...)  |  * + ?  {m} {m,} {m,n}  # comment
//   <think>  <[1000]>  !<think>        one special token, by its text or id, or any other one
//
// A line break ends a rule, except after ::= and | and inside parentheses. Escapes: \n \r \t \\ \" \[ \] \- \^ \xHH
// \uHHHH \UHHHHHHHH. Rules may be left-recursive. Pure function; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "engine/structured_output/grammar/grammar.h"

namespace vllm {

// Returns the id of the special token with this text. nullopt: there is none.
using FindSpecialToken = std::function<std::optional<int32_t>(std::string_view text)>;

// The longest text of a grammar, and its most rules.
inline constexpr size_t kMaxGrammarBytes = size_t{1} << 20;
inline constexpr size_t kMaxGrammarRules = 50'000;

// Without `find_token`, which may be empty, special tokens are not looked up, and the grammar cannot be used. Throws
// RequestError `grammar: line L, column C: <why>`; GrammarLimitError.
Grammar ParseGbnf(std::string_view text, const FindSpecialToken& find_token);

}  // namespace vllm
