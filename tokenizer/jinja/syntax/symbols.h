// The names that are known in one scope of a template while ResolveScopes assigns slots, as in Jinja2's idtracking.py.
// Owned by one call of ResolveScopes; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tokenizer/jinja/syntax/ast.h"

namespace vllm::tokenizer::jinja {

// A function whose slots are being assigned. Slots are numbered per function.
struct FunctionBuilder {
  const FunctionBuilder* parent = nullptr;
  int depth = 0;
  size_t num_slots = 0;
};

struct Ident {
  FunctionBuilder* function = nullptr;
  uint16_t slot = 0;
};

class Symbols {
 public:
  // A scope inside `parent` whose variables get slots of `function`. If `parent` is null, no outer names are visible.
  Symbols(const Symbols* parent, FunctionBuilder* function);

  // Returns a scope for one branch of an {% if %} statement in `scope`. The branch starts with the names of `scope`,
  // which must outlive it.
  static Symbols BranchOf(const Symbols& scope);
  // Adds the names of the three branches of an {% if %} statement. A variable that only some branches assign, and that
  // this scope has not assigned before, starts with the value that the name has outside this scope.
  void MergeBranches(const Symbols& body, const Symbols& elifs, const Symbols& otherwise);

  // Record that the scope reads `name` or assigns it. Throw SyntaxError if the function has no slot left.
  void Load(const std::string& name);
  void Store(const std::string& name);
  // Declares a variable that the evaluator assigns right after it enters the scope.
  Ident DeclareParameter(const std::string& name);

  // Returns the variable that `name` refers to.
  // REQUIRES: `name` was loaded, stored or declared in this scope or an outer one.
  VarRef Resolve(const std::string& name) const;
  ScopeLayout Layout() const;
  FunctionBuilder* function() const { return function_; }

 private:
  struct SlotSource {
    SlotLoad::Source source = SlotLoad::Source::kMissing;
    Ident alias;
    bool is_parameter = false;
  };

  const Ident* FindRef(const std::string& name) const;
  const Ident* FindOwnRef(const std::string& name) const;
  bool HasStored(const std::string& name) const;
  Ident Define(const std::string& name, SlotSource source);
  VarRef RefTo(Ident ident) const;

  const Symbols* parent_;
  const Symbols* base_ = nullptr;  // the scope that contains this branch; null if this is not a branch
  FunctionBuilder* function_;
  std::shared_ptr<std::map<std::string, uint16_t>> slots_;  // shared by a scope and its branches
  std::map<std::string, Ident> refs_;
  std::map<std::string, SlotSource> loads_;
  std::set<std::string> stores_;
};

}  // namespace vllm::tokenizer::jinja
