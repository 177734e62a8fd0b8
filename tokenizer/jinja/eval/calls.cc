#include <algorithm>

#include "tokenizer/jinja/builtins/globals.h"
#include "tokenizer/jinja/builtins/methods.h"
#include "tokenizer/jinja/builtins/subscript.h"
#include "tokenizer/jinja/eval/evaluator.h"
#include "tokenizer/jinja/values/operations.h"
#include "tokenizer/jinja/values/repr.h"

namespace vllm::tokenizer::jinja {

Value Evaluator::Attribute(const Value& object, const Expr& expr) {
  if (object.is(Kind::kLoop)) {
    Value attribute = object.as<LoopObject>().Attribute(expr.name);
    if (!attribute.is(Kind::kMissing)) return attribute;
  } else if (object.is(Kind::kMacro)) {
    const Stmt& stmt = *object.as<MacroObject>().stmt;
    if (expr.name == "name") {
      return stmt.kind == StmtKind::kMacro ? MakeString(&budget_, stmt.name) : Value::None();
    }
    if (expr.name == "catch_kwargs") return Value::Bool(stmt.takes_kwargs);
    if (expr.name == "catch_varargs") return Value::Bool(stmt.takes_varargs);
    if (expr.name == "caller") return Value::Bool(stmt.takes_caller);
    if (expr.name == "arguments") {
      std::vector<Value> names;
      for (const std::string& param : stmt.params) names.push_back(MakeString(&budget_, param));
      return MakeSequence(&budget_, Kind::kTuple, std::move(names));
    }
  }
  line_ = expr.line;
  return GetAttribute(runtime_, object, expr.name, expr.value);
}

void Evaluator::EvalArgs(const Expr& expr, Args& args) {
  args.positional.reserve(expr.args.size() - 1);
  for (size_t i = 1; i < expr.args.size(); ++i) args.positional.push_back(Eval(*expr.args[i]));
  if (!expr.extra) return;
  for (const auto& [name, arg] : expr.extra->keywords) args.keywords.emplace_back(name, Eval(*arg));
  if (expr.extra->star_args) {
    for (Value& item : ToVector(budget_, Eval(*expr.extra->star_args))) args.positional.push_back(std::move(item));
  }
  if (!expr.extra->star_kwargs) return;
  const Value more = Eval(*expr.extra->star_kwargs);
  if (!more.is(Kind::kDict)) throw EvalError("argument after ** must be a mapping");
  budget_.Spend(more.dict().items.size() * (1 + args.keywords.size()));
  for (const auto& [key, value] : more.dict().items) {
    if (!key.is_string()) throw EvalError("keywords must be strings");
    if (args.Keyword(key.text()) != nullptr) throw EvalError("got multiple values for a keyword argument");
    args.keywords.emplace_back(key.text(), value);
  }
}

Value Evaluator::EvalCall(const Expr& expr, const Value* caller) {
  const Expr& callee = *expr.args[0];
  Args args;
  // Call methods directly, without allocating a bound method first.
  const bool is_attribute = callee.kind == ExprKind::kGetAttr;
  const Value object = Eval(is_attribute ? *callee.args[0] : callee);
  const bool is_method = is_attribute && FindMethod(object, callee.name) == MethodAccess::kSafe;
  const Value function = !is_attribute ? object : is_method ? Value() : Attribute(object, callee);
  EvalArgs(expr, args);
  if (caller != nullptr) args.keywords.emplace_back("caller", *caller);
  line_ = expr.line;
  if (!is_method) return Call(function, args);
  budget_.Spend(2);
  if (object.is(Kind::kLoop)) return object.as<LoopObject>().CallMethod(budget_, callee.name, args);
  return CallMethod(runtime_, object, callee.name, args);
}

Value Evaluator::Call(const Value& callee, Args& args) {
  switch (callee.kind()) {
    case Kind::kMacro:
      return CallMacro(callee.as<MacroObject>(), args);
    case Kind::kFunction:
      return CallBuiltin(callee.as<FunctionObject>(), args);
    case Kind::kLoop: {
      const auto& loop = callee.as<LoopObject>();
      if (loop.stmt == nullptr) throw EvalError("the loop must have the 'recursive' marker to be called recursively");
      if (loop.closure == nullptr) throw EvalError("a loop cannot be called after it has ended");
      const BoundArgs bound("loop", args, {"iterable"}, 1);
      const auto closure = loop.closure;
      return MakeString(&budget_, RunRecursiveLoop(*loop.stmt, *bound[0], loop.depth0 + 1, closure));
    }
    case Kind::kJoiner: {
      const BoundArgs none("joiner", args, {});
      auto& joiner = callee.as<JoinerObject>();
      const bool used = std::exchange(joiner.used, true);
      return MakeString(&budget_, used ? joiner.separator : "");
    }
    case Kind::kUndefined:
      throw EvalError(callee.UndefinedMessage());
    default:
      throw EvalError(std::string("'") + TypeName(callee.kind()) + "' object is not callable");
  }
}

Value Evaluator::CallBuiltin(const FunctionObject& function, const Args& args) {
  if (function.self.is(Kind::kMissing)) return CallGlobalFunction(runtime_, function.name, args);
  if (function.self.is(Kind::kBlocks)) return CallBlock(function.name, args);
  if (function.self.is(Kind::kLoop)) return function.self.as<LoopObject>().CallMethod(budget_, function.name, args);
  return CallMethod(runtime_, function.self, function.name, args);
}

Value Evaluator::CallMacro(const MacroObject& macro, Args& args) {
  if (call_depth_ >= kMaxCallDepth) throw EvalError("calls are nested too deeply (limit 128)");
  const Stmt& stmt = *macro.stmt;
  const Switch frame(*this, std::make_shared<CallFrame>(budget_, stmt.function.num_slots, macro.closure));
  EnterScope(stmt.scope);
  BindParameters(stmt, args, *frame_);
  Capture capture(*this);
  Exec(stmt.bodies[0]);
  return MakeString(&budget_, capture.Take());
}

void Evaluator::BindParameters(const Stmt& stmt, Args& args, CallFrame& frame) {
  const size_t num_params = stmt.params.size();
  const size_t num_positional = std::min(args.positional.size(), num_params);
  const auto take = [&](const std::string& name) {
    const auto found = std::find_if(args.keywords.begin(), args.keywords.end(),
                                    [&](const auto& keyword) { return keyword.first == name; });
    if (found == args.keywords.end()) return Value();
    Value value = std::move(found->second);
    args.keywords.erase(found);
    return value;
  };
  for (size_t i = 0; i < num_params; ++i) {
    frame.slots[stmt.param_slots[i]] = i < num_positional ? args.positional[i] : take(stmt.params[i]);
  }
  if (stmt.takes_caller) {
    Value caller = take("caller");
    static const std::string kCaller = "caller";
    frame.slots[stmt.caller_slot] = caller.is(Kind::kMissing) ? Value::Undefined(&kCaller) : std::move(caller);
  }
  if (stmt.takes_kwargs) {
    auto dict = std::make_shared<DictObject>();
    for (auto& [name, value] : args.keywords) dict->Set(MakeString(&budget_, name), std::move(value));
    frame.slots[stmt.kwargs_slot] = MakeDict(&budget_, std::move(dict));
  } else if (!args.keywords.empty()) {
    throw EvalError("macro '" + stmt.name.substr(0, 40) + "' takes no keyword argument '" +
                    EscapeForError(args.keywords.front().first.substr(0, 40)) + "'");
  }
  if (stmt.takes_varargs) {
    std::vector<Value> rest(args.positional.begin() + static_cast<std::ptrdiff_t>(num_positional),
                            args.positional.end());
    frame.slots[stmt.varargs_slot] = MakeSequence(&budget_, Kind::kTuple, std::move(rest));
  } else if (args.positional.size() > num_params) {
    throw EvalError("macro '" + stmt.name.substr(0, 40) + "' got too many arguments (limit " +
                    std::to_string(num_params) + ")");
  }
  const size_t first_default = num_params - stmt.defaults.size();
  for (size_t i = 0; i < num_params; ++i) {
    Value& slot = frame.slots[stmt.param_slots[i]];
    if (!slot.is(Kind::kMissing)) continue;
    Value value = i < first_default ? Value::Undefined(&stmt.params[i]) : Eval(*stmt.defaults[i - first_default]);
    slot = std::move(value);
  }
}

}  // namespace vllm::tokenizer::jinja
