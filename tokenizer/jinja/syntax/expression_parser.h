// The base class of the parser: a token cursor and a recursive-descent parser for expressions with Jinja2's operator
// precedences. Owned by one call of ParseTemplate; one thread. All parse functions throw SyntaxError.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/syntax/lexer.h"

namespace vllm::tokenizer::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

 protected:
  // Counts one level of nesting during its lifetime. Every recursion of the parser creates a Nesting. Throws
  // SyntaxError if there are more than kMaxNesting levels.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser);
    ~Nesting() { --parser_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    ExpressionParser& parser_;
  };

  const Token& current() const { return tokens_[position_]; }
  const Token& look() const { return tokens_[std::min(position_ + 1, tokens_.size() - 1)]; }
  Token Next();
  bool IsOp(std::string_view op) const { return current().kind == TokenKind::kOperator && current().text == op; }
  bool IsName(std::string_view name) const { return current().kind == TokenKind::kName && current().text == name; }
  bool SkipOp(std::string_view op);
  bool SkipName(std::string_view name);
  void ExpectOp(std::string_view op);
  std::string ExpectName();
  void Expect(TokenKind kind, const char* what);
  [[noreturn]] void Fail(const std::string& why) const;
  [[noreturn]] void FailUnexpected() const;

  // How to parse a tuple. A comma may follow its last element if ")", "}}", "%}" or the name `end_name` comes next.
  struct TupleRules {
    bool simplified = false;  // names, literals and expressions in brackets only
    bool with_conditional = true;
    bool explicit_parentheses = false;
    bool with_namespace = false;
    std::string_view end_name;
  };

  ExprPtr NewExpr(ExprKind kind, int line);
  // Moves `args` into the new node. Throws SyntaxError if the node is higher than kMaxHeight.
  ExprPtr NewExpr(ExprKind kind, int line, std::vector<ExprPtr> args);
  // Appends `arg`, which may be null, to expr.args. Throws SyntaxError if `expr` becomes higher than kMaxHeight.
  void Grow(Expr& expr, ExprPtr arg);
  void CountNode();

  ExprPtr ParseExpression(bool with_conditional = true);
  ExprPtr ParseTuple(const TupleRules& rules);
  ExprPtr ParseAssignTarget(std::string_view end_name, bool with_namespace);
  // Parses the filters that follow `input`. `start_inline` means that there is no "|" before the first filter.
  ExprPtr ParseFilter(ExprPtr input, bool start_inline);
  ExprPtr CloneTarget(const Expr& target);
  // Parses the filters for the captured text of a block. Returns null if there is no "|" and `start_inline` is false.
  ExprPtr ParseCapturedFilter(bool start_inline);

 private:
  ExprPtr ParseConditional();
  ExprPtr ParseOr();
  ExprPtr ParseAnd();
  ExprPtr ParseNot();
  ExprPtr ParseCompare();
  ExprPtr ParseSum();
  ExprPtr ParseConcat();
  ExprPtr ParseProduct();
  ExprPtr ParsePower();
  ExprPtr ParseUnary(bool with_filter);
  ExprPtr ParsePrimary(bool with_namespace);
  ExprPtr ParseNumber();
  ExprPtr ParseList();
  ExprPtr ParseDict();
  ExprPtr ParsePostfix(ExprPtr node);
  ExprPtr ParseFilterExpression(ExprPtr node);
  ExprPtr ParseSubscript(ExprPtr node);
  ExprPtr ParseSubscribed();
  ExprPtr ParseTest(ExprPtr node);
  // Parses "(...)" and adds the arguments to call.args and call.extra.
  void ParseCallArguments(Expr& call);
  ExprPtr Binary(Op op, int line, ExprPtr left, ExprPtr right);

  std::vector<Token> tokens_;
  size_t position_ = 0;
  int nesting_ = 0;
  size_t num_nodes_ = 0;
};

}  // namespace vllm::tokenizer::jinja
