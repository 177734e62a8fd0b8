// One run of a {% for %}: where it is, what comes next, and the `loop` variable's view of it.
// Owned by the evaluator; closed when the run ends, so that no chain of old loops can build up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::jinja {

struct Activation;

struct LoopObject : Object {
  // Whether an item passes the loop's `if`; null when there is none.
  std::function<bool(const Value& item)> filter;
  Value source;  // the items, as a list
  size_t next = 0;
  int64_t index0 = -1;
  int depth0 = 0;
  Value before, current;
  std::optional<Value> after;  // looked ahead
  std::optional<Value> last_changed;
  std::optional<int64_t> known_length;

  // Of a recursive loop: what loop(...) runs again.
  const Stmt* stmt = nullptr;
  std::shared_ptr<Activation> closure;

  // Moves to the next item; false at the end.
  bool Advance(Value& item);
  // loop.NAME; a missing value when there is no such attribute.
  Value Attribute(std::string_view name);
  // loop.cycle(...), loop.changed(...).
  Value CallMethod(Budget& heap, std::string_view name, const Args& args);
  // Drops every value the loop holds.
  void Close();

 private:
  std::optional<Value> Pull();
  bool Peek();
  int64_t Length();
};

}  // namespace vllm::jinja
