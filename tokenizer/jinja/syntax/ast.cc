#include "tokenizer/jinja/syntax/ast.h"

#include <algorithm>

namespace vllm::tokenizer::jinja {
namespace {

// Visits nodes in the order of Jinja2's node fields. An assignment that comes first hides later reads.
class NameReader {
 public:
  explicit NameReader(const std::string& name) : name_(name) {}

  bool found() const { return found_; }

  void Visit(const Body& body) {
    for (const StmtPtr& stmt : body) {
      if (done()) return;
      Visit(*stmt);
    }
  }

 private:
  bool done() const { return found_ || hidden_; }

  void Visit(const ExprPtr& expr) {
    if (expr && !done()) Visit(*expr);
  }
  void Visit(const Expr& expr) {
    if (done()) return;
    if (expr.kind == ExprKind::kName && expr.name == name_) found_ = true;
    ForEachChild(expr, [this](const Expr& child) { Visit(child); });
  }

  void Store(const ExprPtr& target) {
    if (!target) return;
    if (target->kind == ExprKind::kName && target->name == name_ && !found_) hidden_ = true;
    for (const ExprPtr& item : target->args) Store(item);
  }

  void Visit(const Stmt& stmt) {
    if (stmt.kind == StmtKind::kBlock) return;
    if (stmt.kind == StmtKind::kCallBlock) Visit(stmt.value);
    if (stmt.kind == StmtKind::kWith) {
      for (size_t i = 0; i < stmt.exprs.size(); i += 2) Store(stmt.exprs[i]);
      for (size_t i = 1; i < stmt.exprs.size(); i += 2) Visit(stmt.exprs[i]);
    }
    Store(stmt.target);
    for (const std::string& param : stmt.params) {
      if (param == name_ && !found_) hidden_ = true;
    }
    for (const ExprPtr& expr : stmt.defaults) Visit(expr);
    if (stmt.kind == StmtKind::kIf) {
      for (size_t i = 0; i < stmt.bodies.size(); ++i) {
        if (i < stmt.exprs.size()) Visit(stmt.exprs[i]);
        Visit(stmt.bodies[i]);
      }
      return;
    }
    if (stmt.kind == StmtKind::kOutput) {
      for (const ExprPtr& expr : stmt.exprs) Visit(expr);
    }
    const bool value_last = stmt.kind == StmtKind::kFilterBlock;
    if (!value_last) Visit(stmt.value);
    for (const Body& body : stmt.bodies) Visit(body);
    if (value_last) Visit(stmt.value);
    Visit(stmt.test);
  }

  const std::string& name_;
  bool found_ = false;
  bool hidden_ = false;
};

bool LooksUp(const ScopeLayout& scope, const std::string& name) {
  return std::ranges::any_of(scope.loads, [&](const SlotLoad& load) {
    return load.source == SlotLoad::Source::kResolve && load.name == name;
  });
}

bool LooksUp(const Body& body, const std::string& name) {
  return std::ranges::any_of(body, [&](const StmtPtr& stmt) {
    return LooksUp(stmt->scope, name) || LooksUp(stmt->else_scope, name) || LooksUp(stmt->test_scope, name) ||
           std::ranges::any_of(stmt->bodies, [&](const Body& inner) { return LooksUp(inner, name); });
  });
}

}  // namespace

bool LooksUp(const Template& tree, const std::string& name) {
  return LooksUp(tree.scope, name) || LooksUp(tree.body, name);
}

bool ReadsName(const Body& body, const std::string& name) {
  NameReader reader(name);
  reader.Visit(body);
  return reader.found();
}

}  // namespace vllm::tokenizer::jinja
