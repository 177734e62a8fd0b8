#include "tokenizer/jinja/syntax/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "tokenizer/jinja/values/string_operations.h"

namespace vllm::tokenizer::jinja {
namespace {

std::optional<Op> CompareOp(const Token& token) {
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return Op::kEq;
  if (token.text == "!=") return Op::kNe;
  if (token.text == "<") return Op::kLt;
  if (token.text == "<=") return Op::kLe;
  if (token.text == ">") return Op::kGt;
  if (token.text == ">=") return Op::kGe;
  return std::nullopt;
}

std::vector<ExprPtr> Pack(ExprPtr a, ExprPtr b = nullptr, ExprPtr c = nullptr) {
  std::vector<ExprPtr> args;
  args.push_back(std::move(a));
  if (b) args.push_back(std::move(b));
  if (c) args.push_back(std::move(c));
  return args;
}

}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& parser) : parser_(parser) {
  if (++parser_.nesting_ > kMaxNesting) {
    --parser_.nesting_;
    parser_.Fail("nesting is too deep (limit " + std::to_string(kMaxNesting) + ")");
  }
}

Token ExpressionParser::Next() {
  Token token = current();
  if (position_ + 1 < tokens_.size()) ++position_;
  return token;
}

bool ExpressionParser::SkipOp(std::string_view op) {
  if (!IsOp(op)) return false;
  Next();
  return true;
}

bool ExpressionParser::SkipName(std::string_view name) {
  if (!IsName(name)) return false;
  Next();
  return true;
}

void ExpressionParser::ExpectOp(std::string_view op) {
  if (!SkipOp(op)) Fail("expected '" + std::string(op) + "'");
}

std::string ExpressionParser::ExpectName() {
  if (current().kind != TokenKind::kName) Fail("expected a name");
  return Next().text;
}

void ExpressionParser::Expect(TokenKind kind, const char* what) {
  if (current().kind != kind) Fail(std::string("expected ") + what);
  Next();
}

void ExpressionParser::Fail(const std::string& why) const { throw SyntaxError(current().line, why); }

void ExpressionParser::FailUnexpected() const {
  switch (current().kind) {
    case TokenKind::kEnd:
      Fail("unexpected end of template");
    case TokenKind::kOperator:
      Fail("unexpected '" + current().text + "'");
    case TokenKind::kVariableEnd:
    case TokenKind::kBlockEnd:
      Fail("expected an expression, got the end of the tag");
    default:
      Fail("expected an expression");
  }
}

void ExpressionParser::CountNode() {
  if (++num_nodes_ > kMaxNodes) Fail("template is too large (limit " + std::to_string(kMaxNodes) + " nodes)");
}

ExprPtr ExpressionParser::NewExpr(ExprKind kind, int line) {
  CountNode();
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

ExprPtr ExpressionParser::NewExpr(ExprKind kind, int line, std::vector<ExprPtr> args) {
  ExprPtr expr = NewExpr(kind, line);
  for (ExprPtr& arg : args) Grow(*expr, std::move(arg));
  return expr;
}

void ExpressionParser::Grow(Expr& expr, ExprPtr arg) {
  if (arg) {
    expr.height = std::max(expr.height, arg->height + 1);
    if (expr.height > kMaxHeight) Fail("expression is too deep (limit " + std::to_string(kMaxHeight) + ")");
  }
  expr.args.push_back(std::move(arg));
}

ExprPtr ExpressionParser::Binary(Op op, int line, ExprPtr left, ExprPtr right) {
  ExprPtr expr = NewExpr(ExprKind::kBinary, line, Pack(std::move(left), std::move(right)));
  expr->op = op;
  return expr;
}

ExprPtr ExpressionParser::ParseExpression(bool with_conditional) {
  return with_conditional ? ParseConditional() : ParseOr();
}

ExprPtr ExpressionParser::ParseConditional() {
  const Nesting nesting(*this);
  int line = current().line;
  ExprPtr result = ParseOr();
  while (SkipName("if")) {
    ExprPtr test = ParseOr();
    ExprPtr other = SkipName("else") ? ParseConditional() : nullptr;
    ExprPtr expr = NewExpr(ExprKind::kConditional, line, Pack(std::move(test), std::move(result)));
    Grow(*expr, std::move(other));
    result = std::move(expr);
    line = current().line;
  }
  return result;
}

ExprPtr ExpressionParser::ParseOr() {
  ExprPtr left = ParseAnd();
  while (IsName("or")) {
    const int line = Next().line;
    ExprPtr right = ParseAnd();
    left = NewExpr(ExprKind::kOr, line, Pack(std::move(left), std::move(right)));
  }
  return left;
}

ExprPtr ExpressionParser::ParseAnd() {
  ExprPtr left = ParseNot();
  while (IsName("and")) {
    const int line = Next().line;
    ExprPtr right = ParseNot();
    left = NewExpr(ExprKind::kAnd, line, Pack(std::move(left), std::move(right)));
  }
  return left;
}

ExprPtr ExpressionParser::ParseNot() {
  if (!IsName("not")) return ParseCompare();
  const Nesting nesting(*this);
  const int line = Next().line;
  return NewExpr(ExprKind::kNot, line, Pack(ParseNot()));
}

ExprPtr ExpressionParser::ParseCompare() {
  ExprPtr left = ParseSum();
  ExprPtr compare;
  for (;;) {
    std::optional<Op> op = CompareOp(current());
    const int line = current().line;
    if (op) {
      Next();
    } else if (SkipName("in")) {
      op = Op::kIn;
    } else if (IsName("not") && look().kind == TokenKind::kName && look().text == "in") {
      Next();
      Next();
      op = Op::kNotIn;
    } else {
      break;
    }
    if (!compare) compare = NewExpr(ExprKind::kCompare, line, Pack(std::move(left)));
    Grow(*compare, ParseSum());
    compare->ops.push_back(*op);
  }
  return compare ? std::move(compare) : std::move(left);
}

ExprPtr ExpressionParser::ParseSum() {
  ExprPtr left = ParseConcat();
  while (IsOp("+") || IsOp("-")) {
    const Token token = Next();
    left = Binary(token.text == "+" ? Op::kAdd : Op::kSub, token.line, std::move(left), ParseConcat());
  }
  return left;
}

ExprPtr ExpressionParser::ParseConcat() {
  const int line = current().line;
  ExprPtr first = ParseProduct();
  if (!IsOp("~")) return first;
  ExprPtr concat = NewExpr(ExprKind::kConcat, line, Pack(std::move(first)));
  while (SkipOp("~")) Grow(*concat, ParseProduct());
  return concat;
}

ExprPtr ExpressionParser::ParseProduct() {
  ExprPtr left = ParsePower();
  for (;;) {
    const Op op = IsOp("*") ? Op::kMul : IsOp("/") ? Op::kDiv : IsOp("//") ? Op::kFloorDiv : Op::kMod;
    if (op == Op::kMod && !IsOp("%")) return left;
    const int line = Next().line;
    left = Binary(op, line, std::move(left), ParsePower());
  }
}

ExprPtr ExpressionParser::ParsePower() {
  ExprPtr left = ParseUnary(true);
  while (IsOp("**")) {
    const int line = Next().line;
    left = Binary(Op::kPow, line, std::move(left), ParseUnary(true));
  }
  return left;
}

ExprPtr ExpressionParser::ParseUnary(bool with_filter) {
  ExprPtr node;
  if (IsOp("-") || IsOp("+")) {
    const Nesting nesting(*this);
    const Token token = Next();
    node = NewExpr(token.text == "-" ? ExprKind::kNeg : ExprKind::kPos, token.line, Pack(ParseUnary(false)));
  } else {
    node = ParsePrimary(false);
  }
  node = ParsePostfix(std::move(node));
  return with_filter ? ParseFilterExpression(std::move(node)) : std::move(node);
}

ExprPtr ExpressionParser::ParseNumber() {
  const Token token = Next();
  ExprPtr node = NewExpr(ExprKind::kConst, token.line);
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    ParseFloat(token.text, value);
    node->value = Value::Float(value);
    return node;
  }
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    const char prefix = static_cast<char>(digits[1] | 0x20);
    base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
    if (base != 10) digits.remove_prefix(2);
  }
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) Fail("integer is out of range (64 bits)");
  node->value = Value::Int(value);
  return node;
}

ExprPtr ExpressionParser::ParsePrimary(bool with_namespace) {
  const int line = current().line;
  switch (current().kind) {
    case TokenKind::kName: {
      const std::string name = Next().text;
      if (name == "true" || name == "True" || name == "false" || name == "False") {
        ExprPtr node = NewExpr(ExprKind::kConst, line);
        node->value = Value::Bool(name[0] == 't' || name[0] == 'T');
        return node;
      }
      if (name == "none" || name == "None") {
        ExprPtr node = NewExpr(ExprKind::kConst, line);
        node->value = Value::None();
        return node;
      }
      ExprPtr node = NewExpr(ExprKind::kName, line);
      node->name = name;
      if (with_namespace && SkipOp(".")) {
        node->kind = ExprKind::kNamespaceRef;
        node->value = MakeString(nullptr, ExpectName());
      }
      return node;
    }
    case TokenKind::kString: {
      std::string text;
      while (current().kind == TokenKind::kString) text += Next().text;
      ExprPtr node = NewExpr(ExprKind::kConst, line);
      node->value = MakeString(nullptr, std::move(text));
      return node;
    }
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return ParseNumber();
    default:
      break;
  }
  if (SkipOp("(")) {
    TupleRules rules;
    rules.explicit_parentheses = true;
    ExprPtr node = ParseTuple(rules);
    ExpectOp(")");
    return node;
  }
  if (IsOp("[")) return ParseList();
  if (IsOp("{")) return ParseDict();
  FailUnexpected();
}

ExprPtr ExpressionParser::ParseTuple(const TupleRules& rules) {
  const int line = current().line;
  std::vector<ExprPtr> args;
  bool is_tuple = false;
  for (;;) {
    if (!args.empty()) ExpectOp(",");
    if (current().kind == TokenKind::kVariableEnd || current().kind == TokenKind::kBlockEnd || IsOp(")") ||
        (!rules.end_name.empty() && IsName(rules.end_name))) {
      break;
    }
    args.push_back(rules.simplified ? ParsePrimary(rules.with_namespace) : ParseExpression(rules.with_conditional));
    if (!IsOp(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!args.empty()) return std::move(args[0]);
    if (!rules.explicit_parentheses) FailUnexpected();
  }
  return NewExpr(ExprKind::kTuple, line, std::move(args));
}

ExprPtr ExpressionParser::ParseList() {
  const int line = Next().line;
  std::vector<ExprPtr> items;
  while (!IsOp("]")) {
    if (!items.empty()) ExpectOp(",");
    if (IsOp("]")) break;
    items.push_back(ParseExpression());
  }
  ExpectOp("]");
  return NewExpr(ExprKind::kList, line, std::move(items));
}

ExprPtr ExpressionParser::ParseDict() {
  const int line = Next().line;
  std::vector<ExprPtr> items;
  while (!IsOp("}")) {
    if (!items.empty()) ExpectOp(",");
    if (IsOp("}")) break;
    items.push_back(ParseExpression());
    ExpectOp(":");
    items.push_back(ParseExpression());
  }
  ExpectOp("}");
  return NewExpr(ExprKind::kDict, line, std::move(items));
}

ExprPtr ExpressionParser::ParsePostfix(ExprPtr node) {
  for (;;) {
    if (IsOp(".") || IsOp("[")) {
      node = ParseSubscript(std::move(node));
    } else if (IsOp("(")) {
      node = NewExpr(ExprKind::kCall, current().line, Pack(std::move(node)));
      ParseCallArguments(*node);
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::ParseFilterExpression(ExprPtr node) {
  for (;;) {
    if (IsOp("|")) {
      node = ParseFilter(std::move(node), false);
    } else if (IsName("is")) {
      node = ParseTest(std::move(node));
    } else if (IsOp("(")) {
      node = NewExpr(ExprKind::kCall, current().line, Pack(std::move(node)));
      ParseCallArguments(*node);
    } else {
      return node;
    }
  }
}

ExprPtr ExpressionParser::ParseSubscript(ExprPtr node) {
  const Token token = Next();
  if (token.text == ".") {
    if (current().kind == TokenKind::kName) {
      ExprPtr result = NewExpr(ExprKind::kGetAttr, token.line, Pack(std::move(node)));
      result->name = Next().text;
      result->value = MakeString(nullptr, result->name);
      return result;
    }
    if (current().kind != TokenKind::kInteger) Fail("expected a name or a number after '.'");
    return NewExpr(ExprKind::kGetItem, token.line, Pack(std::move(node), ParseNumber()));
  }
  std::vector<ExprPtr> indices;
  while (!IsOp("]")) {
    if (!indices.empty()) ExpectOp(",");
    indices.push_back(ParseSubscribed());
  }
  ExpectOp("]");
  ExprPtr index =
      indices.size() == 1 ? std::move(indices[0]) : NewExpr(ExprKind::kTuple, token.line, std::move(indices));
  if (index->kind == ExprKind::kTuple) {
    for (const ExprPtr& item : index->args) {
      if (item->kind == ExprKind::kSlice) Fail("a slice must be the only index");
    }
  }
  return NewExpr(ExprKind::kGetItem, token.line, Pack(std::move(node), std::move(index)));
}

ExprPtr ExpressionParser::ParseSubscribed() {
  const int line = current().line;
  ExprPtr start, stop, step;
  const auto at_end = [&] { return IsOp("]") || IsOp(","); };
  if (!IsOp(":")) {
    start = ParseExpression();
    if (!IsOp(":")) return start;
  }
  Next();
  if (!IsOp(":") && !at_end()) stop = ParseExpression();
  if (SkipOp(":") && !at_end()) step = ParseExpression();
  ExprPtr slice = NewExpr(ExprKind::kSlice, line);
  Grow(*slice, std::move(start));
  Grow(*slice, std::move(stop));
  Grow(*slice, std::move(step));
  return slice;
}

void ExpressionParser::ParseCallArguments(Expr& call) {
  ExpectOp("(");
  auto extra = std::make_unique<CallExtra>();
  const auto ensure = [&](bool valid) {
    if (!valid) Fail("call arguments are in the wrong order, or * or ** is repeated");
  };
  const auto measure = [&](const Expr& arg) {
    call.height = std::max(call.height, arg.height + 1);
    if (call.height > kMaxHeight) Fail("expression is too deep (limit " + std::to_string(kMaxHeight) + ")");
  };
  bool require_comma = false;
  while (!IsOp(")")) {
    if (require_comma) {
      ExpectOp(",");
      if (IsOp(")")) break;
    }
    if (SkipOp("*")) {
      ensure(!extra->star_args && !extra->star_kwargs);
      extra->star_args = ParseExpression();
      measure(*extra->star_args);
    } else if (SkipOp("**")) {
      ensure(!extra->star_kwargs);
      extra->star_kwargs = ParseExpression();
      measure(*extra->star_kwargs);
    } else if (current().kind == TokenKind::kName && look().kind == TokenKind::kOperator && look().text == "=") {
      ensure(!extra->star_kwargs);
      std::string name = Next().text;
      Next();
      for (const auto& keyword : extra->keywords) {
        if (keyword.first == name) Fail("keyword argument '" + name + "' is repeated");
      }
      extra->keywords.emplace_back(std::move(name), ParseExpression());
      measure(*extra->keywords.back().second);
    } else {
      ensure(!extra->star_args && !extra->star_kwargs && extra->keywords.empty());
      Grow(call, ParseExpression());
    }
    require_comma = true;
  }
  ExpectOp(")");
  if (!extra->keywords.empty() || extra->star_args || extra->star_kwargs) call.extra = std::move(extra);
}

ExprPtr ExpressionParser::ParseFilter(ExprPtr input, bool start_inline) {
  while (start_inline || SkipOp("|")) {
    start_inline = false;
    const int line = current().line;
    std::string name = ExpectName();
    while (SkipOp(".")) name.append(".").append(ExpectName());
    input = NewExpr(ExprKind::kFilter, line, Pack(std::move(input)));
    input->name = std::move(name);
    if (IsOp("(")) ParseCallArguments(*input);
  }
  return input;
}

ExprPtr ExpressionParser::ParseCapturedFilter(bool start_inline) {
  if (!start_inline && !IsOp("|")) return nullptr;
  return ParseFilter(NewExpr(ExprKind::kCaptured, current().line), start_inline);
}

ExprPtr ExpressionParser::ParseTest(ExprPtr node) {
  const int line = Next().line;
  const bool negated = SkipName("not");
  std::string name = ExpectName();
  while (SkipOp(".")) name.append(".").append(ExpectName());
  ExprPtr test = NewExpr(ExprKind::kTest, line, Pack(std::move(node)));
  test->name = std::move(name);
  if (IsOp("(")) {
    ParseCallArguments(*test);
  } else if (IsOp("[") || IsOp("{") || current().kind == TokenKind::kString || current().kind == TokenKind::kInteger ||
             current().kind == TokenKind::kFloat ||
             (current().kind == TokenKind::kName && !IsName("else") && !IsName("or") && !IsName("and"))) {
    if (IsName("is")) Fail("tests cannot be chained with 'is'");
    Grow(*test, ParsePostfix(ParsePrimary(false)));
  }
  return negated ? NewExpr(ExprKind::kNot, line, Pack(std::move(test))) : std::move(test);
}

ExprPtr ExpressionParser::ParseAssignTarget(std::string_view end_name, bool with_namespace) {
  TupleRules rules;
  rules.simplified = true;
  rules.end_name = end_name;
  rules.with_namespace = with_namespace;
  ExprPtr target = ParseTuple(rules);
  // Nested targets such as (a, (b, c)) were parsed as expressions, so check every leaf.
  std::vector<const Expr*> pending = {target.get()};
  while (!pending.empty()) {
    const Expr* expr = pending.back();
    pending.pop_back();
    if (expr->kind == ExprKind::kTuple) {
      for (const ExprPtr& item : expr->args) pending.push_back(item.get());
    } else if (expr->kind != ExprKind::kName && expr->kind != ExprKind::kNamespaceRef) {
      Fail("cannot assign to this expression");
    }
  }
  return target;
}

ExprPtr ExpressionParser::CloneTarget(const Expr& target) {
  std::vector<ExprPtr> args;
  for (const ExprPtr& item : target.args) args.push_back(CloneTarget(*item));
  ExprPtr copy = NewExpr(target.kind, target.line, std::move(args));
  copy->name = target.name;
  copy->value = target.value;
  return copy;
}

}  // namespace vllm::tokenizer::jinja
