#include "tokenizer/jinja/syntax/scope.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "tokenizer/jinja/builtins/builtin_tests.h"
#include "tokenizer/jinja/builtins/filters.h"
#include "tokenizer/jinja/syntax/lexer.h"
#include "tokenizer/jinja/syntax/symbols.h"

namespace vllm::tokenizer::jinja {
namespace {

// The Analyze functions find the names that a scope loads and stores. They do not descend into inner scopes.
void Analyze(Symbols& symbols, const Expr& expr) {
  if (expr.kind == ExprKind::kName || expr.kind == ExprKind::kNamespaceRef) symbols.Load(expr.name);
  ForEachChild(expr, [&](const Expr& child) { Analyze(symbols, child); });
}

void AnalyzeTarget(Symbols& symbols, const Expr& target, bool as_parameter) {
  if (target.kind == ExprKind::kName) {
    if (as_parameter) {
      symbols.DeclareParameter(target.name);
    } else {
      symbols.Store(target.name);
    }
  } else if (target.kind == ExprKind::kNamespaceRef) {
    symbols.Load(target.name);
  }
  for (const ExprPtr& item : target.args) AnalyzeTarget(symbols, *item, as_parameter);
}

void Analyze(Symbols& symbols, const Body& body);

void AnalyzeIf(Symbols& symbols, const Stmt& stmt) {
  Analyze(symbols, *stmt.exprs[0]);
  Symbols body = Symbols::BranchOf(symbols);
  Analyze(body, stmt.bodies[0]);
  Symbols elifs = Symbols::BranchOf(symbols);
  for (size_t i = 1; i < stmt.exprs.size(); ++i) {
    Analyze(elifs, *stmt.exprs[i]);
    Symbols inner = Symbols::BranchOf(elifs);
    Analyze(inner, stmt.bodies[i]);
    const Symbols none = Symbols::BranchOf(elifs);
    elifs.MergeBranches(inner, none, none);
  }
  Symbols otherwise = Symbols::BranchOf(symbols);
  if (stmt.bodies.size() > stmt.exprs.size()) Analyze(otherwise, stmt.bodies.back());
  symbols.MergeBranches(body, elifs, otherwise);
}

void Analyze(Symbols& symbols, const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kOutput:
      for (const ExprPtr& expr : stmt.exprs) Analyze(symbols, *expr);
      break;
    case StmtKind::kIf:
      AnalyzeIf(symbols, stmt);
      break;
    case StmtKind::kSet:
      Analyze(symbols, *stmt.value);
      AnalyzeTarget(symbols, *stmt.target, false);
      break;
    case StmtKind::kSetBlock:
      AnalyzeTarget(symbols, *stmt.target, false);
      break;
    case StmtKind::kWith:
      for (size_t i = 1; i < stmt.exprs.size(); i += 2) Analyze(symbols, *stmt.exprs[i]);
      break;
    case StmtKind::kMacro:
      symbols.Store(stmt.name);
      break;
    case StmtKind::kFor:
    case StmtKind::kCallBlock:
    case StmtKind::kFilterBlock:
      Analyze(symbols, *stmt.value);
      break;
    default:
      break;
  }
}

void Analyze(Symbols& symbols, const Body& body) {
  for (const StmtPtr& stmt : body) Analyze(symbols, *stmt);
}

// Writes the slots into the tree, one scope at a time.
class Resolver {
 public:
  void Run(Template& chat_template) {
    FunctionBuilder function;
    Symbols symbols(nullptr, &function);
    blocks_ = &chat_template.blocks;
    chat_template.self_slot = DeclareSelf(symbols, chat_template.body);
    Analyze(symbols, chat_template.body);
    Frame frame{&symbols, true, false};
    Resolve(frame, chat_template.body);
    chat_template.scope = symbols.Layout();
    chat_template.function.num_slots = static_cast<uint16_t>(function.num_slots);
  }

 private:
  struct Frame {
    const Symbols* symbols;
    bool toplevel;
    bool soft;  // an unknown filter or test is an error only when it is executed
  };

  static FunctionBuilder NewFunction(const Symbols& parent) {
    FunctionBuilder function;
    function.parent = parent.function();
    function.depth = parent.function()->depth + 1;
    return function;
  }

  void Resolve(const Frame& frame, Body& body) {
    for (const StmtPtr& stmt : body) Resolve(frame, *stmt);
  }

  void Resolve(Frame frame, Expr& expr) {
    if (expr.kind == ExprKind::kName || expr.kind == ExprKind::kNamespaceRef) {
      expr.ref = frame.symbols->Resolve(expr.name);
    } else if (expr.kind == ExprKind::kConditional) {
      frame.soft = true;
    } else if (expr.kind == ExprKind::kFilter && !frame.soft && !IsFilter(expr.name)) {
      throw SyntaxError(expr.line, "no filter named '" + expr.name.substr(0, 40) + "'");
    } else if (expr.kind == ExprKind::kTest && !frame.soft && !IsTest(expr.name)) {
      throw SyntaxError(expr.line, "no test named '" + expr.name.substr(0, 40) + "'");
    }
    for (const ExprPtr& arg : expr.args) {
      if (arg) Resolve(frame, *arg);
    }
    if (!expr.extra) return;
    for (auto& [name, arg] : expr.extra->keywords) Resolve(frame, *arg);
    if (expr.extra->star_args) Resolve(frame, *expr.extra->star_args);
    if (expr.extra->star_kwargs) Resolve(frame, *expr.extra->star_kwargs);
  }

  void ResolveTarget(const Frame& frame, Expr& target) {
    if (target.kind == ExprKind::kName && target.name == "loop" && for_depth_ > 0) {
      throw SyntaxError(target.line, "cannot assign to the special variable loop");
    }
    if (target.kind != ExprKind::kTuple) target.ref = frame.symbols->Resolve(target.name);
    for (const ExprPtr& item : target.args) ResolveTarget(frame, *item);
  }

  void Resolve(const Frame& frame, Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kOutput:
        for (const ExprPtr& expr : stmt.exprs) Resolve(frame, *expr);
        break;
      case StmtKind::kFor:
        ResolveFor(frame, stmt);
        break;
      case StmtKind::kIf: {
        const Frame soft{frame.symbols, frame.toplevel, true};
        for (const ExprPtr& expr : stmt.exprs) Resolve(soft, *expr);
        for (Body& body : stmt.bodies) Resolve(soft, body);
        break;
      }
      case StmtKind::kSet:
        Resolve(frame, *stmt.value);
        ResolveTarget(frame, *stmt.target);
        stmt.toplevel = frame.toplevel;
        break;
      case StmtKind::kSetBlock:
        ResolveTarget(frame, *stmt.target);
        stmt.toplevel = frame.toplevel;
        ResolveInner(frame, stmt);
        break;
      case StmtKind::kFilterBlock:
      case StmtKind::kAutoescape:
        ResolveInner(frame, stmt);
        break;
      case StmtKind::kWith:
        ResolveWith(frame, stmt);
        break;
      case StmtKind::kMacro:
        stmt.ref = frame.symbols->Resolve(stmt.name);
        stmt.toplevel = frame.toplevel;
        ResolveFunction(frame.symbols, stmt);
        break;
      case StmtKind::kCallBlock:
        Resolve(frame, *stmt.value);
        ResolveFunction(frame.symbols, stmt);
        break;
      case StmtKind::kGeneration:
        ResolveFunction(frame.symbols, stmt);
        break;
      case StmtKind::kBlock:
        (*blocks_)[stmt.name] = &stmt;
        ResolveFunction(nullptr, stmt);
        break;
      case StmtKind::kBreak:
      case StmtKind::kContinue:
      case StmtKind::kNeedsLoader:
        break;
    }
  }

  // Resolves a statement that has its own scope in the same function. stmt.value belongs to that scope.
  void ResolveInner(const Frame& frame, Stmt& stmt) {
    Symbols symbols(frame.symbols, frame.symbols->function());
    Analyze(symbols, stmt.bodies[0]);
    if (stmt.value) Analyze(symbols, *stmt.value);
    const Frame inner{&symbols, false, false};
    Resolve(inner, stmt.bodies[0]);
    if (stmt.value) Resolve(inner, *stmt.value);
    stmt.scope = symbols.Layout();
  }

  void ResolveWith(const Frame& frame, Stmt& stmt) {
    Symbols symbols(frame.symbols, frame.symbols->function());
    for (size_t i = 0; i < stmt.exprs.size(); i += 2) AnalyzeTarget(symbols, *stmt.exprs[i], true);
    Analyze(symbols, stmt.bodies[0]);
    const Frame inner{&symbols, false, false};
    for (size_t i = 0; i < stmt.exprs.size(); i += 2) {
      ResolveTarget(inner, *stmt.exprs[i]);
      Resolve(frame, *stmt.exprs[i + 1]);
    }
    Resolve(inner, stmt.bodies[0]);
    stmt.scope = symbols.Layout();
  }

  void ResolveFor(const Frame& frame, Stmt& stmt) {
    Resolve(frame, *stmt.value);
    FunctionBuilder own = NewFunction(*frame.symbols);
    FunctionBuilder* function = stmt.recursive ? &own : frame.symbols->function();
    stmt.uses_loop = stmt.recursive || ReadsName(stmt.bodies[0], "loop");
    ++for_depth_;

    Symbols loop(frame.symbols, function);
    if (stmt.uses_loop) stmt.loop_slot = loop.DeclareParameter("loop").slot;
    AnalyzeTarget(loop, *stmt.target, true);
    Analyze(loop, stmt.bodies[0]);
    const Frame loop_frame{&loop, false, false};
    ResolveTarget(loop_frame, *stmt.target);
    Resolve(loop_frame, stmt.bodies[0]);
    stmt.scope = loop.Layout();

    if (stmt.test) {
      Symbols test(frame.symbols, function);
      AnalyzeTarget(test, *stmt.test_target, true);
      Analyze(test, *stmt.test);
      const Frame test_frame{&test, false, false};
      ResolveTarget(test_frame, *stmt.test_target);
      Resolve(test_frame, *stmt.test);
      stmt.test_scope = test.Layout();
    }

    Symbols otherwise(frame.symbols, function);
    Analyze(otherwise, stmt.bodies[1]);
    Resolve(Frame{&otherwise, false, false}, stmt.bodies[1]);
    stmt.else_scope = otherwise.Layout();

    --for_depth_;
    stmt.function.num_slots = static_cast<uint16_t>(own.num_slots);
  }

  // Resolves a macro, caller body, generation block or block. Each call has its own variables and can read those of
  // `parent`, which is null for a block.
  void ResolveFunction(const Symbols* parent, Stmt& stmt) {
    FunctionBuilder function;
    if (parent != nullptr) function = NewFunction(*parent);
    Symbols symbols(parent, &function);
    if (stmt.kind == StmtKind::kBlock) stmt.self_slot = DeclareSelf(symbols, stmt.bodies[0]);
    for (const std::string& param : stmt.params) stmt.param_slots.push_back(symbols.DeclareParameter(param).slot);
    for (const ExprPtr& expr : stmt.defaults) Analyze(symbols, *expr);
    Analyze(symbols, stmt.bodies[0]);
    if (stmt.kind == StmtKind::kMacro || stmt.kind == StmtKind::kCallBlock) DeclareSpecial(symbols, stmt);
    const Frame frame{&symbols, false, false};
    for (const ExprPtr& expr : stmt.defaults) Resolve(frame, *expr);
    Resolve(frame, stmt.bodies[0]);
    stmt.scope = symbols.Layout();
    stmt.function.num_slots = static_cast<uint16_t>(function.num_slots);
  }

  // Declares `self`, the variable through which a template calls its own blocks, if `body` reads it.
  static std::optional<uint16_t> DeclareSelf(Symbols& symbols, const Body& body) {
    static const std::string kSelf = "self";
    if (!ReadsName(body, kSelf)) return std::nullopt;
    return symbols.DeclareParameter(kSelf).slot;
  }

  static void DeclareSpecial(Symbols& symbols, Stmt& stmt) {
    const auto declare = [&](const char* name, bool& takes, uint16_t& slot) {
      const auto param = std::find(stmt.params.begin(), stmt.params.end(), name);
      if (!ReadsName(stmt.bodies[0], name)) return;
      if (param != stmt.params.end()) {
        const auto index = static_cast<size_t>(param - stmt.params.begin());
        if (std::string_view(name) == "caller" && index < stmt.params.size() - stmt.defaults.size()) {
          throw SyntaxError(stmt.line, "the special argument caller must be omitted or be given a default");
        }
        return;
      }
      takes = true;
      slot = symbols.DeclareParameter(name).slot;
    };
    declare("caller", stmt.takes_caller, stmt.caller_slot);
    declare("kwargs", stmt.takes_kwargs, stmt.kwargs_slot);
    declare("varargs", stmt.takes_varargs, stmt.varargs_slot);
  }

  std::map<std::string, const Stmt*>* blocks_ = nullptr;
  int for_depth_ = 0;
};

}  // namespace

void ResolveScopes(Template& chat_template) { Resolver().Run(chat_template); }

}  // namespace vllm::tokenizer::jinja
