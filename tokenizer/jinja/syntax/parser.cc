#include "tokenizer/jinja/syntax/parser.h"

#include <algorithm>
#include <set>

#include "tokenizer/jinja/syntax/expression_parser.h"
#include "tokenizer/jinja/syntax/scope.h"

namespace vllm::tokenizer::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  explicit Parser(std::string_view source) : ExpressionParser(Tokenize(source)) {}

  Template Run() {
    Template result;
    result.body = ParseBody({});
    return result;
  }

 private:
  using Names = std::vector<std::string_view>;

  StmtPtr NewStmt(StmtKind kind, int line) {
    CountNode();
    auto stmt = std::make_unique<Stmt>();
    stmt->kind = kind;
    stmt->line = line;
    return stmt;
  }

  // Parses statements up to a tag in `ends` and stops at the name of that tag. If `ends` is empty, parses to the end of
  // the template.
  Body ParseBody(const Names& ends) {
    const Nesting nesting(*this);
    Body body;
    const auto output = [&]() -> Stmt& {
      if (body.empty() || body.back()->kind != StmtKind::kOutput) {
        body.push_back(NewStmt(StmtKind::kOutput, current().line));
      }
      return *body.back();
    };
    for (;;) {
      switch (current().kind) {
        case TokenKind::kEnd:
          if (!ends.empty()) Fail("unexpected end of template, expected '" + std::string(ends.back()) + "'");
          return body;
        case TokenKind::kData: {
          Stmt& stmt = output();
          ExprPtr data = NewExpr(ExprKind::kConst, current().line);
          data->value = MakeString(nullptr, Next().text);
          stmt.exprs.push_back(std::move(data));
          break;
        }
        case TokenKind::kVariableBegin: {
          Stmt& stmt = output();
          Next();
          stmt.exprs.push_back(ParseTuple({}));
          Expect(TokenKind::kVariableEnd, "'}}'");
          break;
        }
        case TokenKind::kBlockBegin:
          Next();
          for (const std::string_view end : ends) {
            if (IsName(end)) return body;
          }
          body.push_back(ParseStatement());
          Expect(TokenKind::kBlockEnd, "'%}'");
          break;
        default:
          FailUnexpected();
      }
    }
  }

  // Parses the rest of the opening tag, then the body.
  Body ParseStatements(const Names& ends) {
    SkipOp(":");
    Expect(TokenKind::kBlockEnd, "'%}'");
    return ParseBody(ends);
  }
  Body ParseStatementsTo(std::string_view end) {
    Body body = ParseStatements({end});
    Next();
    return body;
  }

  StmtPtr ParseStatement() {
    const int line = current().line;
    if (current().kind != TokenKind::kName) Fail("tag name expected");
    const std::string tag = Next().text;
    if (tag == "for") return ParseFor(line);
    if (tag == "if") return ParseIf(line);
    if (tag == "set") return ParseSet(line);
    if (tag == "macro") return ParseMacro(line);
    if (tag == "call") return ParseCallBlock(line);
    if (tag == "filter") return ParseFilterBlock(line);
    if (tag == "with") return ParseWith(line);
    if (tag == "print") return ParsePrint(line);
    if (tag == "block") return ParseBlock(line);
    if (tag == "autoescape") return ParseAutoescape(line);
    if (tag == "generation") {
      StmtPtr stmt = NewStmt(StmtKind::kGeneration, line);
      stmt->bodies.push_back(OutsideLoops([&] { return ParseStatementsTo("endgeneration"); }));
      return stmt;
    }
    if (tag == "break" || tag == "continue") {
      if (loop_depth_ == 0) Fail("'" + tag + "' outside of a loop");
      return NewStmt(tag == "break" ? StmtKind::kBreak : StmtKind::kContinue, line);
    }
    if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
      return ParseLoad(tag, line);
    }
    Fail("unknown tag '" + (tag.size() > 40 ? tag.substr(0, 40) : tag) + "'");
  }

  // Parses the body of a macro, call, generation or block. A break or continue in the body cannot refer to a loop
  // outside it.
  template <typename Parse>
  Body OutsideLoops(Parse parse) {
    const int outer = loop_depth_;
    loop_depth_ = 0;
    Body body = parse();
    loop_depth_ = outer;
    return body;
  }

  StmtPtr ParseFor(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kFor, line);
    stmt->target = ParseAssignTarget("in", false);
    if (!SkipName("in")) Fail("expected 'in'");
    TupleRules rules;
    rules.with_conditional = false;
    rules.end_name = "recursive";
    stmt->value = ParseTuple(rules);
    if (SkipName("if")) {
      stmt->test = ParseExpression();
      stmt->test_target = CloneTarget(*stmt->target);
    }
    stmt->recursive = SkipName("recursive");
    ++loop_depth_;
    stmt->bodies.push_back(ParseStatements({"else", "endfor"}));
    --loop_depth_;
    if (Next().text == "else") {
      stmt->bodies.push_back(ParseStatementsTo("endfor"));
    } else {
      stmt->bodies.emplace_back();
    }
    return stmt;
  }

  StmtPtr ParseIf(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kIf, line);
    for (;;) {
      TupleRules rules;
      rules.with_conditional = false;
      stmt->exprs.push_back(ParseTuple(rules));
      stmt->bodies.push_back(ParseStatements({"elif", "else", "endif"}));
      const Token tag = Next();
      if (tag.text == "elif") continue;
      if (tag.text == "else") stmt->bodies.push_back(ParseStatementsTo("endif"));
      return stmt;
    }
  }

  StmtPtr ParseSet(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kSet, line);
    stmt->target = ParseAssignTarget("", true);
    if (SkipOp("=")) {
      stmt->value = ParseTuple({});
      return stmt;
    }
    stmt->kind = StmtKind::kSetBlock;
    stmt->value = ParseCapturedFilter(false);
    stmt->bodies.push_back(ParseStatementsTo("endset"));
    return stmt;
  }

  void ParseSignature(Stmt& stmt) {
    ExpectOp("(");
    while (!IsOp(")")) {
      if (!stmt.params.empty()) ExpectOp(",");
      const std::string name = ExpectName();
      for (const char* constant : {"true", "false", "none", "True", "False", "None"}) {
        if (name == constant) Fail("cannot assign to a constant");
      }
      if (std::find(stmt.params.begin(), stmt.params.end(), name) != stmt.params.end()) {
        Fail("parameter '" + name + "' is repeated");
      }
      if (SkipOp("=")) {
        stmt.defaults.push_back(ParseExpression());
      } else if (!stmt.defaults.empty()) {
        Fail("non-default argument follows default argument");
      }
      stmt.params.push_back(name);
    }
    ExpectOp(")");
  }

  StmtPtr ParseMacro(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kMacro, line);
    stmt->name = ExpectName();
    ParseSignature(*stmt);
    stmt->bodies.push_back(OutsideLoops([&] { return ParseStatementsTo("endmacro"); }));
    return stmt;
  }

  StmtPtr ParseCallBlock(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kCallBlock, line);
    stmt->name = "caller";
    if (IsOp("(")) ParseSignature(*stmt);
    stmt->value = ParseExpression();
    if (stmt->value->kind != ExprKind::kCall) Fail("expected a call");
    stmt->bodies.push_back(OutsideLoops([&] { return ParseStatementsTo("endcall"); }));
    return stmt;
  }

  StmtPtr ParseFilterBlock(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kFilterBlock, line);
    stmt->value = ParseCapturedFilter(true);
    stmt->bodies.push_back(ParseStatementsTo("endfilter"));
    return stmt;
  }

  StmtPtr ParseWith(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kWith, line);
    while (current().kind != TokenKind::kBlockEnd) {
      if (!stmt->exprs.empty()) ExpectOp(",");
      stmt->exprs.push_back(ParseAssignTarget("", false));
      ExpectOp("=");
      stmt->exprs.push_back(ParseExpression());
    }
    stmt->bodies.push_back(ParseStatementsTo("endwith"));
    return stmt;
  }

  StmtPtr ParsePrint(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kOutput, line);
    while (current().kind != TokenKind::kBlockEnd) {
      if (!stmt->exprs.empty()) ExpectOp(",");
      stmt->exprs.push_back(ParseExpression());
    }
    return stmt;
  }

  StmtPtr ParseBlock(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kBlock, line);
    stmt->name = ExpectName();
    if (!block_names_.insert(stmt->name).second) Fail("block '" + stmt->name + "' is defined twice");
    if (IsName("scoped") || IsName("required")) Fail("scoped and required blocks are not supported");
    stmt->bodies.push_back(OutsideLoops([&] { return ParseStatementsTo("endblock"); }));
    SkipName(stmt->name);
    return stmt;
  }

  bool SkipContext() {
    const bool found =
        (IsName("with") || IsName("without")) && look().kind == TokenKind::kName && look().text == "context";
    if (found) {
      Next();
      Next();
    }
    return found;
  }

  // Parses include, import, from or extends. As in transformers, there is no loader, so executing the tag is an error.
  StmtPtr ParseLoad(const std::string& tag, int line) {
    StmtPtr stmt = NewStmt(StmtKind::kNeedsLoader, line);
    ParseExpression();
    if (tag == "import") {
      if (!SkipName("as")) Fail("expected 'as'");
      ExpectName();
    } else if (tag == "include" && IsName("ignore") && look().kind == TokenKind::kName && look().text == "missing") {
      Next();
      Next();
    } else if (tag == "from") {
      if (!SkipName("import")) Fail("expected 'import'");
      for (bool first = true;; first = false) {
        if (!first) ExpectOp(",");
        if (SkipContext()) break;
        ExpectName();
        if (SkipName("as")) ExpectName();
        if (SkipContext() || !IsOp(",")) break;
      }
    }
    if (tag == "import" || tag == "include") SkipContext();
    return stmt;
  }

  StmtPtr ParseAutoescape(int line) {
    StmtPtr stmt = NewStmt(StmtKind::kAutoescape, line);
    stmt->value = ParseExpression();
    stmt->bodies.push_back(ParseStatementsTo("endautoescape"));
    return stmt;
  }

  int loop_depth_ = 0;
  std::set<std::string> block_names_;
};

}  // namespace

Template ParseTemplate(std::string_view source) {
  Template result = Parser(source).Run();
  ResolveScopes(result);
  return result;
}

}  // namespace vllm::tokenizer::jinja
