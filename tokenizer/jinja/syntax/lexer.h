// Splits template source into tokens by the rules of Jinja2's lexer with trim_blocks and lstrip_blocks.
// Pure function, any thread.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vllm::tokenizer::jinja {

// Thrown if a template cannot be parsed. The message has no line number; `line` counts from 1.
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(int line_number, const std::string& why) : std::runtime_error(why), line(line_number) {}
  int line;
};

enum class TokenKind : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // strings are unquoted and unescaped; underscores are removed from numbers
};

inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;
inline constexpr size_t kMaxTokens = 400'000;

// Returns the tokens; the last one is kEnd. Throws SyntaxError.
std::vector<Token> Tokenize(std::string_view source);

}  // namespace vllm::tokenizer::jinja
