// The syntax tree of a chat template. The parser builds it and ResolveScopes adds the variable slots. After that it is
// immutable, and any number of threads may evaluate it. Owned by ChatTemplate.
// Invariant: the height of an expression is at most kMaxHeight and statements nest at most kMaxNesting levels, so
// functions may recurse into the tree.
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

namespace vllm::tokenizer::jinja {

inline constexpr int kMaxNesting = 128;  // nesting of tags, brackets, prefix operators and conditional expressions
inline constexpr int kMaxHeight = 400;   // height of an expression; also limits chains such as a + b + c and a.b.c
inline constexpr size_t kMaxNodes = 100'000;

// Lists of operands in the comments are the elements of Expr::args. A name after a semicolon is another field of Expr.
enum class ExprKind : uint8_t {
  kConst,
  kName,
  kNamespaceRef,  // ns.name as an assignment target
  kCaptured,      // the text that a {% filter %} or {% set | filter %} block captured
  kList,
  kTuple,
  kDict,  // key, value, key, value, ...
  kGetAttr,
  kGetItem,  // object, index
  kSlice,    // start, stop, step (each may be null)
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
  kConditional,  // test, then, else (may be null)
};

// A variable: slot number `slot` of the call frame that is `hops` parents above the current one.
struct VarRef {
  uint16_t hops = 0;
  uint16_t slot = 0;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// The arguments of a call other than the positional ones.
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

// The comments name fields of Stmt.
enum class StmtKind : uint8_t {
  kOutput,  // exprs
  kFor,
  kIf,        // exprs[i] is the condition of bodies[i]; an extra body is the else branch
  kSet,       // target, value
  kSetBlock,  // target, value (a filter for the captured text, or null)
  kWith,      // exprs: target, value, target, value, ...
  kMacro,
  kCallBlock,    // value: the call; the body becomes its `caller`
  kFilterBlock,  // value: the filter
  kGeneration,
  kBlock,
  kAutoescape,  // value
  kBreak,
  kContinue,
  kNeedsLoader,  // include, import, from, extends
};

// How to initialize one variable when a scope is entered: kMissing clears it, kAlias copies the outer variable `alias`,
// and kResolve looks up `name` in the exported top-level variables, the context and the global functions.
struct SlotLoad {
  enum class Source : uint8_t { kMissing, kAlias, kResolve };
  uint16_t slot = 0;
  Source source = Source::kMissing;
  VarRef alias;
  std::string name;
};
struct ScopeLayout {
  std::vector<SlotLoad> loads;
  std::vector<uint16_t> slots;  // all slots of the scope; LeaveScope clears them
};

// A part of the template whose calls each have their own variables: a macro, a caller body, a recursive loop, a
// generation block, a block, or the template itself.
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
  ExprPtr test_target, test;  // `for target in value if test`: a copy of target in the scope of the test, and the test
  bool recursive = false;
  bool uses_loop = false;
  std::vector<ExprPtr> exprs;
  std::vector<Body> bodies;  // for: body, else
  std::vector<std::string> params;
  std::vector<ExprPtr> defaults;  // defaults of the last params

  // Set by ResolveScopes.
  VarRef ref;  // macro: the variable that the macro is assigned to
  ScopeLayout scope, else_scope, test_scope;
  FunctionLayout function;  // macro, call block, generation, block, recursive for
  uint16_t loop_slot = 0;
  std::vector<uint16_t> param_slots;
  bool takes_caller = false, takes_kwargs = false, takes_varargs = false;
  uint16_t caller_slot = 0, kwargs_slot = 0, varargs_slot = 0;
  bool toplevel = false;              // set and macro: true if blocks can read the variable
  std::optional<uint16_t> self_slot;  // block: the slot of `self`, if the block reads it
};

struct Template {
  Body body;
  ScopeLayout scope;
  FunctionLayout function;
  std::optional<uint16_t> self_slot;
  std::map<std::string, const Stmt*> blocks;  // all blocks by name, at any depth
};

// Returns true if an expression in `body` reads `name` and no assignment to it comes earlier in the order of Jinja2's
// node fields, in which the target of {% set %} comes before its value. Ignores {% block %} statements.
bool ReadsName(const Body& body, const std::string& name);

// Returns true if the template may look up `name` in the variables that it is rendered with. REQUIRES: ResolveScopes
// was called.
bool LooksUp(const Template& tree, const std::string& name);

// Calls visit(const Expr&) for each direct child that is not null.
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

}  // namespace vllm::tokenizer::jinja
