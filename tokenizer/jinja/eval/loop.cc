#include "tokenizer/jinja/eval/loop.h"

#include "tokenizer/jinja/values/operations.h"

namespace vllm::tokenizer::jinja {

std::optional<Value> LoopObject::Pull() {
  while (source.is(Kind::kList) && next < source.items().size()) {
    Value item = source.items()[next++];
    if (!filter || filter(item)) return item;
  }
  return std::nullopt;
}

bool LoopObject::Peek() {
  if (!after) after = Pull();
  return after.has_value();
}

bool LoopObject::Advance(Value& item) {
  std::optional<Value> found = after ? std::move(after) : Pull();
  after.reset();
  if (!found) return false;
  ++index0;
  before = std::move(current);
  current = *found;
  item = *std::move(found);
  return true;
}

int64_t LoopObject::Length() {
  if (!known_length && filter) {
    // Like Python's list(generator): filter all remaining items now.
    std::vector<Value> rest;
    while (std::optional<Value> item = Pull()) rest.push_back(*std::move(item));
    known_length = static_cast<int64_t>(rest.size()) + index0 + 1 + (after ? 1 : 0);
    filter = nullptr;
    source = MakeSequence(nullptr, Kind::kList, std::move(rest));
    next = 0;
  }
  if (!known_length) known_length = source.is(Kind::kList) ? static_cast<int64_t>(source.items().size()) : index0 + 1;
  return *known_length;
}

Value LoopObject::Attribute(std::string_view name) {
  if (name == "index0") return Value::Int(index0);
  if (name == "index") return Value::Int(index0 + 1);
  if (name == "first") return Value::Bool(index0 == 0);
  if (name == "last") return Value::Bool(!Peek());
  if (name == "length") return Value::Int(Length());
  if (name == "revindex") return Value::Int(Length() - index0);
  if (name == "revindex0") return Value::Int(Length() - index0 - 1);
  if (name == "depth") return Value::Int(depth0 + 1);
  if (name == "depth0") return Value::Int(depth0);
  if (name == "previtem") return index0 == 0 || before.is(Kind::kMissing) ? Value::Undefined() : before;
  if (name == "nextitem") return Peek() ? *after : Value::Undefined();
  return Value();
}

Value LoopObject::CallMethod(Budget& heap, std::string_view name, const Args& args) {
  if (!args.keywords.empty()) throw EvalError("loop methods take no keyword arguments");
  if (name == "cycle") {
    if (args.positional.empty()) throw EvalError("no items for cycling given");
    return args.positional[static_cast<size_t>(std::max<int64_t>(index0, 0)) % args.positional.size()];
  }
  Value seen = MakeSequence(&heap, Kind::kTuple, args.positional);
  if (last_changed && Equals(heap, *last_changed, seen)) return Value::Bool(false);
  last_changed = std::move(seen);
  return Value::Bool(true);
}

void LoopObject::Close() {
  // After a {% break %}, the remaining items are not filtered, because that would evaluate template code.
  if (filter && !known_length) known_length = index0 + 1 + (after ? 1 : 0);
  filter = nullptr;
  Length();
  source = before = current = Value();
  after.reset();
  last_changed.reset();
  closure.reset();
}

}  // namespace vllm::tokenizer::jinja
