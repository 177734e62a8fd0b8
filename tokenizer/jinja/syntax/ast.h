// The syntax tree of a chat template. Built by the parser, completed by the scope pass (variable slots), then constant:
// any number of threads may evaluate it. Owned by ChatTemplate.
// Invariant 1: a tree's height is at most kMaxHeight, so that walks of it may recurse.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

inline constexpr int kMaxNesting = 128;  // tags in tags, brackets in brackets
inline constexpr int kMaxHeight = 400;   // also counts a + b + c + ..., a.b.c...
inline constexpr size_t kMaxNodes = 100'000;

enum class ExprKind : uint8_t {
  kConst,
  kName,
  kNamespaceRef,  // ns.name as an assignment target
  kCaptured,      // the text a {% filter %} or {% set | filter %} block captured
  kList,
  kTuple,
  kDict,  // key, value, key, value, ...
  kGetAttr,
  kGetItem,  // object, index
  kSlice,    // start, stop, step; null where absent
  kCall,     // callee, positional arguments
  kFilter,   // input, positional arguments
  kTest,
  kNot,
  kNeg,
  kPos,
  kAnd,
  kOr,
  kBinary,       // left, right; op
  kConcat,       // a ~ b ~ c
  kCompare,      // a < b < c; ops
  kConditional,  // test, then, else or null
};

// A variable: `slot` of the activation `hops` functions out.
struct VarRef {
  uint16_t hops = 0;
  uint16_t slot = 0;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// The rest of a call's arguments.
struct CallExtra {
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr star_args, star_kwargs;
};

struct Expr {
  ExprKind kind;
  Op op = Op::kAdd;
  int line = 0;
  int height = 1;
  VarRef ref;
  std::string name;
  Value value;
  std::vector<ExprPtr> args;
  std::vector<Op> ops;
  std::unique_ptr<CallExtra> extra;
};

enum class StmtKind : uint8_t {
  kOutput,  // exprs
  kFor,
  kIf,        // exprs[i] guards bodies[i]; one more body is the else
  kSet,       // target, value
  kSetBlock,  // target, value (filter of the captured text, or null)
  kWith,      // exprs: target, value, target, value, ...
  kMacro,
  kCallBlock,    // value: the call; the body is its caller
  kFilterBlock,  // value: the filter
  kGeneration,
  kBlock,
  kAutoescape,  // value
  kBreak,
  kContinue,
  kNeedsLoader,  // include, import, from, extends
};

// What happens to variables when a scope is entered.
struct SlotLoad {
  enum class Source : uint8_t { kMissing, kAlias, kResolve };
  uint16_t slot = 0;
  Source source = Source::kMissing;
  VarRef alias;
  std::string name;
};
struct ScopeLayout {
  std::vector<SlotLoad> loads;
  std::vector<uint16_t> slots;  // all slots of the scope, emptied when it is left
};

// A part of the template with variables of its own per call: macro, caller body, recursive loop, block, the template.
struct FunctionLayout {
  uint16_t num_slots = 0;
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct Stmt {
  StmtKind kind;
  int line = 0;
  int height = 1;
  std::string name;
  ExprPtr target, value;
  ExprPtr test_target, test;  // for ... if test: the target once more, in the test's own scope
  bool recursive = false;
  bool uses_loop = false;
  std::vector<ExprPtr> exprs;
  std::vector<Body> bodies;  // for: body, else
  std::vector<std::string> params;
  std::vector<ExprPtr> defaults;  // of the last params

  // Filled by the scope pass.
  VarRef ref;  // macro: the variable that names it
  ScopeLayout scope, else_scope, test_scope;
  FunctionLayout function;  // macro, call block, generation, block, recursive for
  uint16_t loop_slot = 0;
  std::vector<uint16_t> param_slots;
  bool takes_caller = false, takes_kwargs = false, takes_varargs = false;
  uint16_t caller_slot = 0, kwargs_slot = 0, varargs_slot = 0;
  bool toplevel = false;              // set: also visible to blocks
  std::optional<uint16_t> self_slot;  // block: where it has the variable self, if it reads that
};

struct Template {
  Body body;
  ScopeLayout scope;
  FunctionLayout function;
  std::optional<uint16_t> self_slot;
  std::map<std::string, const Stmt*> blocks;  // wherever they stand in the body
};

// Whether some expression in `body` reads `name` before the body assigns it (blocks excepted).
bool ReadsName(const Body& body, const std::string& name);

// Calls visit(const Expr&) for each direct child that is there.
template <typename Visit>
void ForEachChild(const Expr& expr, Visit visit) {
  for (const ExprPtr& arg : expr.args) {
    if (arg) visit(*arg);
  }
  if (!expr.extra) return;
  for (const auto& [name, arg] : expr.extra->keywords) visit(*arg);
  if (expr.extra->star_args) visit(*expr.extra->star_args);
  if (expr.extra->star_kwargs) visit(*expr.extra->star_kwargs);
}

}  // namespace vllm::jinja
