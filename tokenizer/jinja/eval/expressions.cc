#include <utility>

#include "tokenizer/jinja/builtins/builtin_tests.h"
#include "tokenizer/jinja/builtins/filters.h"
#include "tokenizer/jinja/builtins/subscript.h"
#include "tokenizer/jinja/eval/evaluator.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"

namespace vllm::tokenizer::jinja {
namespace {

constexpr size_t kExpressionFuel = 3;

}  // namespace

Value& Evaluator::Slot(VarRef ref) {
  CallFrame* frame = frame_.get();
  for (int hops = ref.hops; hops > 0; --hops) frame = frame->parent.get();
  return frame->slots[ref.slot];
}

Value Evaluator::Eval(const Expr& expr) {
  if (expr.kind == ExprKind::kConst) return expr.value;
  budget_.Spend(kExpressionFuel);
  if (expr.kind == ExprKind::kName) return EvalName(expr);
  const DepthGuard guard(*this);
  line_ = expr.line;
  return EvalNode(expr);
}

Value Evaluator::EvalName(const Expr& expr) {
  const Value& value = Slot(expr.ref);
  return value.is(Kind::kMissing) ? Value::Undefined(&expr.name) : value;
}

Value Evaluator::EvalNode(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConst:
      return expr.value;
    case ExprKind::kName:
      return EvalName(expr);
    case ExprKind::kNamespaceRef:
      return Value();
    case ExprKind::kCaptured:
      return captured_;
    case ExprKind::kList:
    case ExprKind::kTuple:
      return EvalSequence(expr);
    case ExprKind::kDict:
      return EvalDict(expr);
    case ExprKind::kGetAttr:
      return Attribute(Eval(*expr.args[0]), expr);
    case ExprKind::kGetItem:
    case ExprKind::kSlice:
      return EvalGetItem(expr);
    case ExprKind::kCall:
      return EvalCall(expr, nullptr);
    case ExprKind::kFilter:
      return EvalFilter(expr);
    case ExprKind::kTest:
      return EvalTest(expr);
    case ExprKind::kNot:
      return Value::Bool(!Truthy(Eval(*expr.args[0])));
    case ExprKind::kNeg:
      return Negate(Eval(*expr.args[0]));
    case ExprKind::kPos: {
      const Value value = Eval(*expr.args[0]);
      return Negate(Negate(value));
    }
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      Value left = Eval(*expr.args[0]);
      return Truthy(left) == (expr.kind == ExprKind::kAnd) ? Eval(*expr.args[1]) : left;
    }
    case ExprKind::kBinary: {
      const Value left = Eval(*expr.args[0]);
      const Value right = Eval(*expr.args[1]);
      line_ = expr.line;
      return Arithmetic(budget_, expr.op, left, right);
    }
    case ExprKind::kConcat:
      return EvalConcat(expr);
    case ExprKind::kCompare:
      return EvalCompare(expr);
    case ExprKind::kConditional:
      return EvalConditional(expr);
  }
  return Value();
}

Value Evaluator::EvalSequence(const Expr& expr) {
  std::vector<Value> items;
  items.reserve(expr.args.size());
  for (const ExprPtr& arg : expr.args) items.push_back(Eval(*arg));
  return MakeSequence(&budget_, expr.kind == ExprKind::kList ? Kind::kList : Kind::kTuple, std::move(items));
}

Value Evaluator::EvalDict(const Expr& expr) {
  auto dict = std::make_shared<DictObject>();
  for (size_t i = 0; i + 1 < expr.args.size(); i += 2) {
    Value key = Eval(*expr.args[i]);
    dict->Set(std::move(key), Eval(*expr.args[i + 1]));
  }
  return MakeDict(&budget_, std::move(dict));
}

Value Evaluator::EvalGetItem(const Expr& expr) {
  const Value object = Eval(*expr.args[0]);
  const Expr& index = *expr.args[1];
  if (index.kind == ExprKind::kSlice) {
    const auto part = [&](size_t i) { return index.args[i] ? Eval(*index.args[i]) : Value::None(); };
    const Value start = part(0);
    const Value stop = part(1);
    return GetSlice(runtime_, object, start, stop, part(2));
  }
  const Value key = Eval(index);
  if (object.is(Kind::kLoop) && key.is_string()) {
    Value attribute = object.as<LoopObject>().Attribute(key.text());
    if (!attribute.is(Kind::kMissing)) return attribute;
  }
  line_ = expr.line;
  return GetItem(runtime_, object, key);
}

Value Evaluator::EvalConcat(const Expr& expr) {
  std::string text;
  for (const ExprPtr& arg : expr.args) AppendStr(budget_, Eval(*arg), text);
  return MakeString(&budget_, std::move(text));
}

Value Evaluator::EvalCompare(const Expr& expr) {
  Value left = Eval(*expr.args[0]);
  for (size_t i = 0; i < expr.ops.size(); ++i) {
    Value right = Eval(*expr.args[i + 1]);
    line_ = expr.line;
    if (!CompareValues(budget_, expr.ops[i], left, right)) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Value Evaluator::EvalConditional(const Expr& expr) {
  if (Truthy(Eval(*expr.args[0]))) return Eval(*expr.args[1]);
  return expr.args[2] ? Eval(*expr.args[2]) : Value::Undefined();
}

Value Evaluator::EvalFilter(const Expr& expr) {
  const Value input = Eval(*expr.args[0]);
  Args args;
  EvalArgs(expr, args);
  line_ = expr.line;
  return CallFilter(runtime_, expr.name, input, args);
}

Value Evaluator::EvalTest(const Expr& expr) {
  const Value value = Eval(*expr.args[0]);
  Args args;
  EvalArgs(expr, args);
  line_ = expr.line;
  return Value::Bool(CallTest(runtime_, expr.name, value, args));
}

}  // namespace vllm::tokenizer::jinja
