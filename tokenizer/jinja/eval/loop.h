// The state of one run of a {% for %} statement, and the attributes of its `loop` variable. Shared by the evaluator and
// the template's values; one thread. The evaluator calls Close at the end of the run, so that finished loops cannot
// form long chains of references.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "tokenizer/jinja/syntax/ast.h"
#include "tokenizer/jinja/values/args.h"
#include "tokenizer/jinja/values/value.h"

namespace vllm::tokenizer::jinja {

struct CallFrame;

struct LoopObject : Object {
  // Returns true if an item passes the `if` of the loop. Null if the loop has no `if`, after Length has filtered all
  // items, and after Close.
  std::function<bool(const Value& item)> filter;
  Value source;  // a list until Close; the items from `next` on are still to be read
  size_t next = 0;
  int64_t index0 = -1;
  int depth0 = 0;
  Value before, current;
  std::optional<Value> after;  // the next item, if it was read ahead
  std::optional<Value> last_changed;
  std::optional<int64_t> known_length;

  // For loop(...): the statement to run and its closure. Null unless the loop is recursive.
  const Stmt* stmt = nullptr;
  std::shared_ptr<CallFrame> closure;

  // Moves to the next item. Returns false at the end.
  bool Advance(Value& item);
  // Returns loop.NAME, or a kMissing value if there is no such attribute.
  Value Attribute(std::string_view name);
  // Calls loop.cycle(...) or loop.changed(...).
  Value CallMethod(Budget& heap, std::string_view name, const Args& args);
  // Computes loop.length for later uses of the loop, then releases all values that the loop refers to.
  void Close();

 private:
  std::optional<Value> Pull();
  bool Peek();
  int64_t Length();
};

}  // namespace vllm::tokenizer::jinja
