#include "tokenizer/jinja/eval/evaluator.h"

#include <algorithm>

#include "tokenizer/jinja/builtins/globals.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"

namespace vllm::tokenizer::jinja {
namespace {

// The base cost of one statement, without the elements and bytes that it touches.
constexpr size_t kStatementFuel = 4;

class LoopCloser {
 public:
  explicit LoopCloser(LoopObject& loop) : loop_(loop) {}
  ~LoopCloser() { loop_.Close(); }
  LoopCloser(const LoopCloser&) = delete;
  LoopCloser& operator=(const LoopCloser&) = delete;

 private:
  LoopObject& loop_;
};

}  // namespace

Evaluator::Switch::Switch(Evaluator& evaluator, CallFramePtr frame)
    : evaluator_(evaluator), outer_(std::move(evaluator.frame_)) {
  ++evaluator_.call_depth_;
  evaluator_.frame_ = std::move(frame);
}

Evaluator::Evaluator(const Template& chat_template, Runtime& runtime, Value context)
    : template_(chat_template), runtime_(runtime), budget_(runtime.budget), context_(std::move(context)) {}

Evaluator::~Evaluator() {
  for (const auto& macro : macros_) macro->closure.reset();
}

std::string Evaluator::Run() {
  frame_ = std::make_shared<CallFrame>(budget_, template_.function.num_slots, nullptr);
  EnterScope(template_.scope);
  if (template_.self_slot) frame_->slots[*template_.self_slot] = Blocks();
  Exec(template_.body);
  return std::move(output_);
}

Value Evaluator::ResolveGlobal(const std::string& name) {
  budget_.Spend(2);
  const auto exported = exports_.find(name);
  if (exported != exports_.end()) return exported->second;
  if (const Value* found = context_.dict().Find(name)) return *found;
  if (IsGlobalFunction(name)) return MakeFunction(&budget_, name);
  return Value();
}

void Evaluator::EnterScope(const ScopeLayout& scope) {
  budget_.Spend(scope.loads.size());
  for (const SlotLoad& load : scope.loads) {
    Value value;
    if (load.source == SlotLoad::Source::kAlias) {
      value = Slot(load.alias);
    } else if (load.source == SlotLoad::Source::kResolve) {
      value = ResolveGlobal(load.name);
    }
    frame_->slots[load.slot] = std::move(value);
  }
}

void Evaluator::LeaveScope(const ScopeLayout& scope) {
  for (const uint16_t slot : scope.slots) frame_->slots[slot] = Value();
}

void Evaluator::Emit(std::string_view text) {
  budget_.SpendBytes(text.size());
  const size_t size = captured_bytes_ + out_->size() + text.size();
  if (size > Budget::kMaxTextBytes) {
    throw EvalError("output is too long (limit " + std::to_string(Budget::kMaxTextBytes) + " bytes)");
  }
  budget_.SetOutput(size);
  // Grow large strings by a quarter: a string that doubles needs three times its old size while it is copied.
  constexpr size_t kLargeBytes = size_t{4} << 20;
  if (out_->capacity() >= kLargeBytes && size > out_->capacity()) {
    out_->reserve(std::max(size, out_->capacity() + out_->capacity() / 4));
  }
  *out_ += text;
}

void Evaluator::EmitValue(const Value& value) {
  if (value.is_string()) {
    Emit(value.text());
  } else if (!value.is_undefined()) {
    Emit(Str(budget_, value));
  }
}

Evaluator::Flow Evaluator::Exec(const Body& body) {
  for (const StmtPtr& stmt : body) {
    const Flow flow = Exec(*stmt);
    if (flow != Flow::kNormal) return flow;
  }
  return Flow::kNormal;
}

Evaluator::Flow Evaluator::Exec(const Stmt& stmt) {
  const DepthGuard guard(*this);
  budget_.Spend(kStatementFuel);
  line_ = stmt.line;
  switch (stmt.kind) {
    case StmtKind::kOutput:
      for (const ExprPtr& expr : stmt.exprs) {
        if (expr->kind == ExprKind::kConst) {
          EmitValue(expr->value);
        } else {
          EmitValue(Eval(*expr));
        }
      }
      return Flow::kNormal;
    case StmtKind::kIf:
      return ExecIf(stmt);
    case StmtKind::kFor:
      return ExecFor(stmt);
    case StmtKind::kSet:
      Assign(*stmt.target, Eval(*stmt.value), stmt.toplevel);
      return Flow::kNormal;
    case StmtKind::kSetBlock:
    case StmtKind::kFilterBlock:
      return ExecCaptured(stmt);
    case StmtKind::kWith:
      return ExecWith(stmt);
    case StmtKind::kMacro: {
      Value macro = MakeMacro(stmt);
      if (stmt.toplevel) Export(stmt.name, macro);
      Slot(stmt.ref) = std::move(macro);
      return Flow::kNormal;
    }
    case StmtKind::kCallBlock: {
      const Value caller = MakeMacro(stmt);
      EmitValue(EvalCall(*stmt.value, &caller));
      return Flow::kNormal;
    }
    case StmtKind::kGeneration:
      ExecSeparate(stmt, frame_);
      return Flow::kNormal;
    case StmtKind::kBlock:
      ExecSeparate(stmt, nullptr);
      return Flow::kNormal;
    case StmtKind::kAutoescape:
      EnterScope(stmt.scope);
      if (Truthy(Eval(*stmt.value))) throw EvalError("autoescape is not supported");
      return ExecScoped(stmt.scope, stmt.bodies[0]);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
    case StmtKind::kNeedsLoader:
      throw EvalError("loading other templates is not supported");
  }
  return Flow::kNormal;
}

Evaluator::Flow Evaluator::ExecScoped(const ScopeLayout& scope, const Body& body) {
  EnterScope(scope);
  const Flow flow = Exec(body);
  LeaveScope(scope);
  return flow;
}

Evaluator::Flow Evaluator::ExecIf(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.exprs.size(); ++i) {
    if (Truthy(Eval(*stmt.exprs[i]))) return Exec(stmt.bodies[i]);
  }
  return stmt.bodies.size() > stmt.exprs.size() ? Exec(stmt.bodies.back()) : Flow::kNormal;
}

Evaluator::Flow Evaluator::ExecWith(const Stmt& stmt) {
  // The values can use only outer variables, so evaluate all of them before entering the scope.
  std::vector<Value> values;
  for (size_t i = 1; i < stmt.exprs.size(); i += 2) values.push_back(Eval(*stmt.exprs[i]));
  EnterScope(stmt.scope);
  for (size_t i = 0; i < values.size(); ++i) Assign(*stmt.exprs[2 * i], values[i], false);
  const Flow flow = Exec(stmt.bodies[0]);
  LeaveScope(stmt.scope);
  return flow;
}

Evaluator::Flow Evaluator::ExecCaptured(const Stmt& stmt) {
  EnterScope(stmt.scope);
  Value text;
  Flow flow = Flow::kNormal;
  {
    Capture capture(*this);
    flow = Exec(stmt.bodies[0]);
    text = MakeString(&budget_, capture.Take());
  }
  // A break or continue out of the block discards the captured text.
  if (flow == Flow::kNormal) {
    if (stmt.value) {
      Value outer = std::exchange(captured_, std::move(text));
      text = Eval(*stmt.value);
      captured_ = std::move(outer);
    }
    if (stmt.kind == StmtKind::kFilterBlock) {
      EmitValue(text);
    } else {
      Assign(*stmt.target, text, stmt.toplevel);
    }
  }
  LeaveScope(stmt.scope);
  return flow;
}

void Evaluator::ExecSeparate(const Stmt& stmt, CallFramePtr parent) {
  if (call_depth_ >= kMaxCallDepth) throw EvalError("calls are nested too deeply (limit 128)");
  const Switch frame(*this, std::make_shared<CallFrame>(budget_, stmt.function.num_slots, std::move(parent)));
  EnterScope(stmt.scope);
  if (stmt.self_slot) frame_->slots[*stmt.self_slot] = Blocks();
  Exec(stmt.bodies[0]);
}

Value Evaluator::Blocks() {
  auto blocks = std::make_shared<BlocksObject>();
  blocks->Charge(&budget_, sizeof(BlocksObject));
  blocks->blocks = &template_.blocks;
  return Value(Kind::kBlocks, std::move(blocks));
}

Value Evaluator::CallBlock(const std::string& name, const Args& args) {
  const BoundArgs none("block", args, {});
  Capture capture(*this);
  ExecSeparate(*template_.blocks.at(name), nullptr);
  return MakeString(&budget_, capture.Take());
}

Evaluator::Flow Evaluator::ExecFor(const Stmt& stmt) {
  const Value iterable = Eval(*stmt.value);
  if (!stmt.recursive) return RunLoop(stmt, iterable, 0, nullptr);
  Emit(RunRecursiveLoop(stmt, iterable, 0, frame_));
  return Flow::kNormal;
}

std::string Evaluator::RunRecursiveLoop(const Stmt& stmt, const Value& iterable, int depth,
                                        const CallFramePtr& closure) {
  if (call_depth_ >= kMaxCallDepth) throw EvalError("calls are nested too deeply (limit 128)");
  const Switch frame(*this, std::make_shared<CallFrame>(budget_, stmt.function.num_slots, closure));
  Capture capture(*this);
  RunLoop(stmt, iterable, depth, closure);
  return capture.Take();
}

Evaluator::Flow Evaluator::RunLoop(const Stmt& stmt, const Value& iterable, int depth, const CallFramePtr& closure) {
  const auto loop = std::make_shared<LoopObject>();
  loop->Charge(&budget_, sizeof(LoopObject));
  const LoopCloser closer(*loop);
  loop->source = iterable.is(Kind::kList) ? iterable : MakeSequence(&budget_, Kind::kList, ToVector(budget_, iterable));
  loop->depth0 = depth;
  if (stmt.recursive) {
    loop->stmt = &stmt;
    loop->closure = closure;
  }
  if (stmt.test) {
    EnterScope(stmt.test_scope);
    // A macro can trigger the filter through loop.last or loop.length, so the filter switches back to this frame.
    loop->filter = [this, &stmt, frame = frame_.get(), shared = std::weak_ptr<CallFrame>(frame_)](const Value& item) {
      const DepthGuard guard(*this);
      const CallFramePtr owner = shared.lock();
      if (!owner) return false;
      const Switch current(*this, owner);
      Assign(*stmt.test_target, item, false);
      return Truthy(Eval(*stmt.test));
    };
  }
  bool run_else = true;
  Value item;
  while (loop->Advance(item)) {
    budget_.Spend(2);
    EnterScope(stmt.scope);
    Assign(*stmt.target, item, false);
    if (stmt.uses_loop) frame_->slots[stmt.loop_slot] = Value(Kind::kLoop, loop);
    const Flow flow = Exec(stmt.bodies[0]);
    if (flow == Flow::kBreak) break;
    // As in code compiled by Jinja2, the else branch runs unless some iteration reached the end of the body.
    if (flow == Flow::kNormal) run_else = false;
  }
  LeaveScope(stmt.scope);
  if (stmt.test) LeaveScope(stmt.test_scope);
  return run_else && !stmt.bodies[1].empty() ? ExecScoped(stmt.else_scope, stmt.bodies[1]) : Flow::kNormal;
}

void Evaluator::Export(const std::string& name, const Value& value) {
  if (!template_.blocks.empty()) exports_[name] = value;
}

void Evaluator::Assign(const Expr& target, const Value& value, bool toplevel) {
  switch (target.kind) {
    case ExprKind::kName:
      if (toplevel) Export(target.name, value);
      Slot(target.ref) = value;
      return;
    case ExprKind::kNamespaceRef: {
      const Value space = Slot(target.ref);
      if (!space.is(Kind::kNamespace)) throw EvalError("cannot assign attribute on non-namespace object");
      const std::string& name = target.value.text();
      if (name.starts_with("_")) throw EvalError("namespace attributes must not start with an underscore");
      space.as<NamespaceObject>().Set(budget_, name, value);
      return;
    }
    default:
      break;
  }
  const std::vector<Value> items = ToVector(budget_, value);
  if (items.size() != target.args.size()) {
    throw EvalError("wrong number of values to unpack: " + std::to_string(items.size()) + ", expected " +
                    std::to_string(target.args.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) Assign(*target.args[i], items[i], toplevel);
}

Value Evaluator::MakeMacro(const Stmt& stmt) {
  auto macro = std::make_shared<MacroObject>();
  macro->Charge(&budget_, sizeof(MacroObject));
  macro->depth = 1;
  macro->stmt = &stmt;
  macro->closure = frame_;
  macros_.push_back(macro);
  return Value(Kind::kMacro, std::move(macro));
}

}  // namespace vllm::tokenizer::jinja
