// Renders a parsed template with a context. Owned by one call of ChatTemplate::Render or RenderJson and used only by
// its thread. An evaluator renders once, and it only reads the template.
// Invariant: for any template, evaluation nests at most kMaxEvalDepth levels, and calls nest at most kMaxCallDepth
// levels.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/jinja/eval/loop.h"
#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/runtime.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

inline constexpr int kMaxEvalDepth = 1200;
inline constexpr int kMaxCallDepth = 128;

// The variables of one call (see FunctionLayout).
struct CallFrame {
  CallFrame(Budget& heap, size_t num_slots, std::shared_ptr<CallFrame> outer)
      : slots(num_slots), parent(std::move(outer)), budget(heap) {
    budget.Reserve(num_slots * sizeof(Value));
  }
  ~CallFrame() { budget.Release(slots.size() * sizeof(Value)); }
  CallFrame(const CallFrame&) = delete;
  CallFrame& operator=(const CallFrame&) = delete;

  std::vector<Value> slots;
  std::shared_ptr<CallFrame> parent;
  Budget& budget;
};

struct MacroObject : Object {
  const Stmt* stmt = nullptr;
  std::shared_ptr<CallFrame> closure;
};

class Evaluator {
 public:
  // `context` is a dict of variables. The template and the runtime must outlive the evaluator.
  Evaluator(const Template& chat_template, Runtime& runtime, Value context);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  // Returns the output. Throws EvalError; line() is then the line of the error. Call it once.
  std::string Run();
  int line() const { return line_; }

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  using CallFramePtr = std::shared_ptr<CallFrame>;

  // Redirects the output to its own string during its lifetime.
  class Capture;
  // Makes another frame current and counts one call during its lifetime.
  class Switch;
  // Counts one level of evaluation during its lifetime. Throws EvalError at kMaxEvalDepth.
  class DepthGuard;

  // evaluator.cc
  Flow Exec(const Body& body);
  Flow Exec(const Stmt& stmt);
  Flow ExecScoped(const ScopeLayout& scope, const Body& body);
  Flow ExecIf(const Stmt& stmt);
  Flow ExecFor(const Stmt& stmt);
  Flow ExecWith(const Stmt& stmt);
  Flow ExecCaptured(const Stmt& stmt);
  void ExecSeparate(const Stmt& stmt, CallFramePtr parent);
  Value Blocks();
  Value CallBlock(const std::string& name, const Args& args);
  Flow RunLoop(const Stmt& stmt, const Value& iterable, int depth, const CallFramePtr& closure);
  std::string RunRecursiveLoop(const Stmt& stmt, const Value& iterable, int depth, const CallFramePtr& closure);
  void EnterScope(const ScopeLayout& scope);
  void LeaveScope(const ScopeLayout& scope);
  Value ResolveGlobal(const std::string& name);
  void Assign(const Expr& target, const Value& value, bool toplevel);
  void Export(const std::string& name, const Value& value);
  Value MakeMacro(const Stmt& stmt);
  void Emit(std::string_view text);
  void EmitValue(const Value& value);

  // expressions.cc
  Value Eval(const Expr& expr);
  Value EvalNode(const Expr& expr);
  Value EvalSequence(const Expr& expr);
  Value EvalDict(const Expr& expr);
  Value EvalGetItem(const Expr& expr);
  Value EvalCompare(const Expr& expr);
  Value EvalConcat(const Expr& expr);
  Value EvalFilter(const Expr& expr);
  Value EvalTest(const Expr& expr);
  Value EvalConditional(const Expr& expr);
  Value EvalName(const Expr& expr);
  Value& Slot(VarRef ref);

  // calls.cc
  Value EvalCall(const Expr& expr, const Value* caller);
  void EvalArgs(const Expr& expr, Args& args);
  Value Attribute(const Value& object, const Expr& expr);
  Value Call(const Value& callee, Args& args);
  Value CallMacro(const MacroObject& macro, Args& args);
  Value CallBuiltin(const FunctionObject& function, const Args& args);
  void BindParameters(const Stmt& stmt, Args& args, CallFrame& frame);

  const Template& template_;
  Runtime& runtime_;
  Budget& budget_;
  Value context_;
  std::shared_ptr<CallFrame> frame_;
  std::string output_;
  std::string* out_ = &output_;
  size_t captured_bytes_ = 0;  // bytes in the outer output buffers, without *out_
  Value captured_;             // the value of ExprKind::kCaptured
  int depth_ = 0;
  int call_depth_ = 0;
  int line_ = 1;
  std::vector<std::shared_ptr<MacroObject>> macros_;  // all macros; ~Evaluator clears their closures to break cycles
  std::unordered_map<std::string, Value> exports_;    // top-level variables, which blocks can read
};

class Evaluator::Capture {
 public:
  explicit Capture(Evaluator& evaluator) : evaluator_(evaluator), outer_(evaluator.out_) {
    evaluator_.captured_bytes_ += outer_->size();
    evaluator_.out_ = &text_;
  }
  ~Capture() {
    evaluator_.captured_bytes_ -= outer_->size();
    evaluator_.out_ = outer_;
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  std::string Take() { return std::move(text_); }

 private:
  Evaluator& evaluator_;
  std::string* outer_;
  std::string text_;
};

class Evaluator::Switch {
 public:
  Switch(Evaluator& evaluator, CallFramePtr frame);
  ~Switch() {
    evaluator_.frame_ = std::move(outer_);
    --evaluator_.call_depth_;
  }
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

 private:
  Evaluator& evaluator_;
  CallFramePtr outer_;
};

class Evaluator::DepthGuard {
 public:
  explicit DepthGuard(Evaluator& evaluator) : evaluator_(evaluator) {
    if (evaluator_.depth_ >= kMaxEvalDepth) {
      throw EvalError("evaluation is nested too deeply (limit " + std::to_string(kMaxEvalDepth) + ")");
    }
    ++evaluator_.depth_;
  }
  ~DepthGuard() { --evaluator_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

 private:
  Evaluator& evaluator_;
};

}  // namespace vllm::tokenizer::jinja
